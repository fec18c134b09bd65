from typing import Any

from ...client import AuthenticatedClient
from ...models.suppressed_actions_request_request import SuppressedActionsRequestRequest
from ...models.suppressed_actions_result import SuppressedActionsResult
from ...types import UNSET, Unset


def held_back_isolate_create(
    *,
    client: AuthenticatedClient,
    body: SuppressedActionsRequestRequest,
    idempotency_key: str | Unset = UNSET,
) -> SuppressedActionsResult:
    """Execute the suppressed isolations of a pool.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/held-back/isolate",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = SuppressedActionsResult.from_dict(response.json())

    return response_200
