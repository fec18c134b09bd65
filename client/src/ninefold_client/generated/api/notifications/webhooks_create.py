from typing import Any

from ...client import AuthenticatedClient
from ...models.webhook_create_request import WebhookCreateRequest
from ...models.webhook_with_secret import WebhookWithSecret
from ...types import UNSET, Unset


def webhooks_create(
    *,
    client: AuthenticatedClient,
    body: WebhookCreateRequest,
    dry_run: bool | Unset = False,
    idempotency_key: str | Unset = UNSET,
) -> WebhookWithSecret:
    """Create a webhook.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/webhooks",
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_201 = WebhookWithSecret.from_dict(response.json())

    return response_201
