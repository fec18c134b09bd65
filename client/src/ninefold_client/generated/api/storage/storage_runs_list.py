from typing import Any

from ...client import AuthenticatedClient
from ...models.paginated_storage_cleanup_run_list import PaginatedStorageCleanupRunList
from ...models.storage_runs_list_kind import (
    StorageRunsListKind,
)
from ...types import UNSET, Unset


def storage_runs_list(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    kind: StorageRunsListKind | Unset = UNSET,
    page_size: int | Unset = 50,
) -> PaginatedStorageCleanupRunList:
    """Retention and garbage-collection runs.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    json_kind: str | Unset = UNSET
    if not isinstance(kind, Unset):
        json_kind = kind

    params["kind"] = json_kind

    params["page_size"] = page_size

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/storage/runs",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedStorageCleanupRunList.from_dict(response.json())

    return response_200
