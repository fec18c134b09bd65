from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.patched_token_change_request import PatchedTokenChangeRequest
from ...models.token import Token
from ...types import UNSET, Unset


def tokens_partial_update(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: PatchedTokenChangeRequest | Unset = UNSET,
) -> Token:
    """Rename a personal token.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/api/v1/tokens/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = Token.from_dict(response.json())

    return response_200
