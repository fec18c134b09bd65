from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.priority_class import PriorityClass


def priority_classes_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> PriorityClass:
    """A priority class.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/priority-classes/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PriorityClass.from_dict(response.json())

    return response_200
