from typing import Any

from ...client import AuthenticatedClient
from ...models.deliveries_list_state import (
    DeliveriesListState,
)
from ...models.paginated_webhook_delivery_list import PaginatedWebhookDeliveryList
from ...types import UNSET, Unset


def deliveries_list(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    page_size: int | Unset = 50,
    state: DeliveriesListState | Unset = UNSET,
    webhook: str | Unset = UNSET,
) -> PaginatedWebhookDeliveryList:
    """Webhook deliveries.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    params["page_size"] = page_size

    json_state: str | Unset = UNSET
    if not isinstance(state, Unset):
        json_state = state

    params["state"] = json_state

    params["webhook"] = webhook

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/deliveries",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedWebhookDeliveryList.from_dict(response.json())

    return response_200
