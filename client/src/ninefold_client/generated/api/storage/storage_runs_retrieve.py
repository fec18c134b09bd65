from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.storage_cleanup_run import StorageCleanupRun


def storage_runs_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> StorageCleanupRun:
    """A retention or garbage-collection run.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/storage/runs/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = StorageCleanupRun.from_dict(response.json())

    return response_200
