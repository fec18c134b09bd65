from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.defragmentation_plan import DefragmentationPlan


def defragmentation_plans_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> DefragmentationPlan:
    """A defragmentation plan.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/defragmentation-plans/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = DefragmentationPlan.from_dict(response.json())

    return response_200
