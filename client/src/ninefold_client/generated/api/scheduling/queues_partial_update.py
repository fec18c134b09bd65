from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.patched_queue_write_request import PatchedQueueWriteRequest
from ...models.queue import Queue
from ...models.queue_tree_preview import QueueTreePreview
from ...types import UNSET, Unset


def queues_partial_update(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: PatchedQueueWriteRequest | Unset = UNSET,
    dry_run: bool | Unset = False,
    if_match: str | Unset = UNSET,
) -> Queue | QueueTreePreview:
    """Change or move a queue.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["If-Match"] = if_match

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/api/v1/queues/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
        "params": params,
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)

    def _parse_response_200(data: object) -> Queue | QueueTreePreview:
        try:
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_queue_or_preview_type_0 = Queue.from_dict(data)

            return componentsschemas_queue_or_preview_type_0
        except (TypeError, ValueError, AttributeError, KeyError):
            pass
        if not isinstance(data, dict):
            raise TypeError()
        componentsschemas_queue_or_preview_type_1 = QueueTreePreview.from_dict(data)

        return componentsschemas_queue_or_preview_type_1

    response_200 = _parse_response_200(response.json())

    return response_200
