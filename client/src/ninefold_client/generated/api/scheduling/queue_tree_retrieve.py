from typing import Any

from ...client import AuthenticatedClient
from ...models.queue_file import QueueFile
from ...models.queue_tree_retrieve_format import (
    QueueTreeRetrieveFormat,
)
from ...types import UNSET, Unset


def queue_tree_retrieve(
    *,
    client: AuthenticatedClient,
    format_: QueueTreeRetrieveFormat | Unset = UNSET,
    of: str | Unset = UNSET,
) -> QueueFile:
    """The queue tree as a file.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    json_format_: str | Unset = UNSET
    if not isinstance(format_, Unset):
        json_format_ = format_

    params["format"] = json_format_

    params["of"] = of

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/queue-tree",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = QueueFile.from_dict(response.json())

    return response_200
