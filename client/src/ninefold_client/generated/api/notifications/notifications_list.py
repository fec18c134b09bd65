from typing import Any

from ...client import AuthenticatedClient
from ...models.notifications_list_kind import (
    NotificationsListKind,
)
from ...models.paginated_notification_list import PaginatedNotificationList
from ...types import UNSET, Unset


def notifications_list(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    kind: NotificationsListKind | Unset = UNSET,
    page_size: int | Unset = 50,
    unread: bool | Unset = UNSET,
) -> PaginatedNotificationList:
    """My notifications.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    json_kind: str | Unset = UNSET
    if not isinstance(kind, Unset):
        json_kind = kind

    params["kind"] = json_kind

    params["page_size"] = page_size

    params["unread"] = unread

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/notifications",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedNotificationList.from_dict(response.json())

    return response_200
