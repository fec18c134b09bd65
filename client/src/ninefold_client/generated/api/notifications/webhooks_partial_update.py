from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.patched_webhook_change_request import PatchedWebhookChangeRequest
from ...models.webhook_with_new_secret import WebhookWithNewSecret
from ...types import UNSET, Unset


def webhooks_partial_update(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: PatchedWebhookChangeRequest | Unset = UNSET,
    dry_run: bool | Unset = False,
) -> WebhookWithNewSecret:
    """Change, pause or resume a webhook.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/api/v1/webhooks/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
        "params": params,
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = WebhookWithNewSecret.from_dict(response.json())

    return response_200
