from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.apply_set import ApplySet


def apply_sets_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> ApplySet:
    """An apply set with its objects.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/apply-sets/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = ApplySet.from_dict(response.json())

    return response_200
