from typing import Any

from ...client import AuthenticatedClient
from ...models.marked_read_count import MarkedReadCount
from ...types import UNSET, Unset


def notifications_read_all_create(
    *,
    client: AuthenticatedClient,
    idempotency_key: str | Unset = UNSET,
) -> MarkedReadCount:
    """Mark all of my notifications as read.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/notifications/read-all",
    }

    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = MarkedReadCount.from_dict(response.json())

    return response_200
