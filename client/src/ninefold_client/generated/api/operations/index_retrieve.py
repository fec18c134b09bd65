from typing import Any

from ...client import AuthenticatedClient
from ...models.api_index import ApiIndex


def index_retrieve(
    *,
    client: AuthenticatedClient,
) -> ApiIndex:
    """Index of the API.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/",
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = ApiIndex.from_dict(response.json())

    return response_200
