from typing import Any

from ...client import AuthenticatedClient
from ...models.paginated_user_list import PaginatedUserList
from ...types import UNSET, Unset


def users_list(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    page_size: int | Unset = 50,
    username: str | Unset = UNSET,
) -> PaginatedUserList:
    """Users.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    params["page_size"] = page_size

    params["username"] = username

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/users",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedUserList.from_dict(response.json())

    return response_200
