from typing import Any

from ...client import AuthenticatedClient
from ...models.new_node_token import NewNodeToken
from ...models.node_token_create_request import NodeTokenCreateRequest
from ...types import UNSET, Unset


def node_tokens_create(
    *,
    client: AuthenticatedClient,
    body: NodeTokenCreateRequest,
    idempotency_key: str | Unset = UNSET,
) -> NewNodeToken:
    """Create a node token.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/node-tokens",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_201 = NewNodeToken.from_dict(response.json())

    return response_201
