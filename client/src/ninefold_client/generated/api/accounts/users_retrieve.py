from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.user import User


def users_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> User:
    """A user.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/users/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = User.from_dict(response.json())

    return response_200
