from typing import Any

from ...client import AuthenticatedClient
from ...models.api_key_create_request import ApiKeyCreateRequest
from ...models.new_api_key import NewApiKey
from ...types import UNSET, Unset


def keys_create(
    *,
    client: AuthenticatedClient,
    body: ApiKeyCreateRequest,
    idempotency_key: str | Unset = UNSET,
) -> NewApiKey:
    """Create a gateway key.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/keys",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_201 = NewApiKey.from_dict(response.json())

    return response_201
