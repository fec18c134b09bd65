from typing import Any

from ...client import AuthenticatedClient
from ...models.queue import Queue
from ...models.queue_tree_preview import QueueTreePreview
from ...models.queue_write_request import QueueWriteRequest
from ...types import UNSET, Unset


def queues_create(
    *,
    client: AuthenticatedClient,
    body: QueueWriteRequest,
    dry_run: bool | Unset = False,
    idempotency_key: str | Unset = UNSET,
    if_match: str | Unset = UNSET,
) -> Queue | QueueTreePreview:
    """Create a queue.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    if not isinstance(if_match, Unset):
        headers["If-Match"] = if_match

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/queues",
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = QueueTreePreview.from_dict(response.json())

    return response_200
