from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.queue_change import QueueChange


def queue_changes_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> QueueChange:
    """A change of the queue tree.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/queue-changes/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = QueueChange.from_dict(response.json())

    return response_200
