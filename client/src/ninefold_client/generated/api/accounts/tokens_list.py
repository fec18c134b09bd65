from typing import Any

from ...client import AuthenticatedClient
from ...models.paginated_token_list import PaginatedTokenList
from ...types import UNSET, Unset


def tokens_list(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    page_size: int | Unset = 50,
) -> PaginatedTokenList:
    """My personal tokens.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    params["page_size"] = page_size

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/tokens",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedTokenList.from_dict(response.json())

    return response_200
