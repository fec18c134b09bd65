from typing import Any

from ...client import AuthenticatedClient
from ...models.queue_file_request import QueueFileRequest
from ...models.queue_tree_preview import QueueTreePreview
from ...models.queue_tree_saved import QueueTreeSaved
from ...models.queue_tree_update_format import (
    QueueTreeUpdateFormat,
)
from ...types import UNSET, Unset


def queue_tree_update(
    *,
    client: AuthenticatedClient,
    body: QueueFileRequest | Unset = UNSET,
    dry_run: bool | Unset = False,
    format_: QueueTreeUpdateFormat | Unset = UNSET,
    note: str | Unset = UNSET,
    prune: bool | Unset = False,
    if_match: str | Unset = UNSET,
) -> QueueTreePreview | QueueTreeSaved:
    """Apply a file to the queue tree.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["If-Match"] = if_match

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    json_format_: str | Unset = UNSET
    if not isinstance(format_, Unset):
        json_format_ = format_

    params["format"] = json_format_

    params["note"] = note

    params["prune"] = prune

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/api/v1/queue-tree",
        "params": params,
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)

    def _parse_response_200(data: object) -> QueueTreePreview | QueueTreeSaved:
        try:
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_saved_or_preview_type_0 = QueueTreeSaved.from_dict(data)

            return componentsschemas_saved_or_preview_type_0
        except (TypeError, ValueError, AttributeError, KeyError):
            pass
        if not isinstance(data, dict):
            raise TypeError()
        componentsschemas_saved_or_preview_type_1 = QueueTreePreview.from_dict(data)

        return componentsschemas_saved_or_preview_type_1

    response_200 = _parse_response_200(response.json())

    return response_200
