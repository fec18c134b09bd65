from typing import Any

from ...client import AuthenticatedClient
from ...models.paginated_node_token_list import PaginatedNodeTokenList
from ...types import UNSET, Unset


def node_tokens_list(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    node: str | Unset = UNSET,
    page_size: int | Unset = 50,
) -> PaginatedNodeTokenList:
    """Node tokens.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    params["node"] = node

    params["page_size"] = page_size

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/node-tokens",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedNodeTokenList.from_dict(response.json())

    return response_200
