from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.token import Token


def tokens_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> Token:
    """A personal token.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/tokens/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = Token.from_dict(response.json())

    return response_200
