from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.webhook_delivery import WebhookDelivery
from ...types import UNSET, Unset


def webhooks_test_create(
    uid: str,
    *,
    client: AuthenticatedClient,
    idempotency_key: str | Unset = UNSET,
) -> WebhookDelivery:
    """Send a test event to a webhook.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/webhooks/{uid}/test".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_202 = WebhookDelivery.from_dict(response.json())

    return response_202
