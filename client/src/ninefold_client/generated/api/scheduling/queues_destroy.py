from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.queue_tree_preview import QueueTreePreview
from ...types import UNSET, Unset


def queues_destroy(
    uid: str,
    *,
    client: AuthenticatedClient,
    dry_run: bool | Unset = False,
    note: str | Unset = UNSET,
    if_match: str | Unset = UNSET,
) -> Any | QueueTreePreview:
    """Retire a queue.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["If-Match"] = if_match

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params["note"] = note

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "delete",
        "url": "/api/v1/queues/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
        "params": params,
    }

    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = QueueTreePreview.from_dict(response.json())

    return response_200
