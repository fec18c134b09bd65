from typing import Any

from ...client import AuthenticatedClient
from ...models.new_token import NewToken
from ...models.token_create_request import TokenCreateRequest
from ...types import UNSET, Unset


def tokens_create(
    *,
    client: AuthenticatedClient,
    body: TokenCreateRequest,
    idempotency_key: str | Unset = UNSET,
) -> NewToken:
    """Create a personal token.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/tokens",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_201 = NewToken.from_dict(response.json())

    return response_201
