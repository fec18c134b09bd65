from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.queue import Queue


def queues_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> Queue:
    """A queue.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/queues/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = Queue.from_dict(response.json())

    return response_200
