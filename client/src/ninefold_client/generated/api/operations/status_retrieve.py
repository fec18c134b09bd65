from typing import Any

from ...client import AuthenticatedClient
from ...models.status import Status


def status_retrieve(
    *,
    client: AuthenticatedClient,
) -> Status:
    """System status.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/status",
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = Status.from_dict(response.json())

    return response_200
