from typing import Any

from ...client import AuthenticatedClient
from ...models.storage_usage import StorageUsage


def storage_retrieve(
    *,
    client: AuthenticatedClient,
) -> StorageUsage:
    """Storage usage by team.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/storage",
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = StorageUsage.from_dict(response.json())

    return response_200
