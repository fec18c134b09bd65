from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.webhook_delivery import WebhookDelivery


def deliveries_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> WebhookDelivery:
    """Get a webhook delivery with all attempts.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/deliveries/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = WebhookDelivery.from_dict(response.json())

    return response_200
