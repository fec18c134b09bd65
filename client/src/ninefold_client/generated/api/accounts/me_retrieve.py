from typing import Any

from ...client import AuthenticatedClient
from ...models.current_user import CurrentUser


def me_retrieve(
    *,
    client: AuthenticatedClient,
) -> CurrentUser:
    """My account, roles and permissions.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/me",
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = CurrentUser.from_dict(response.json())

    return response_200
