from typing import Any

from ...client import AuthenticatedClient
from ...models.paginated_stored_artifact_list import PaginatedStoredArtifactList
from ...models.storage_artifacts_list_kind import (
    StorageArtifactsListKind,
)
from ...types import UNSET, Unset


def storage_artifacts_list(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    kind: StorageArtifactsListKind | Unset = UNSET,
    page_size: int | Unset = 50,
    team: str | Unset = UNSET,
) -> PaginatedStoredArtifactList:
    """Stored objects.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    json_kind: str | Unset = UNSET
    if not isinstance(kind, Unset):
        json_kind = kind

    params["kind"] = json_kind

    params["page_size"] = page_size

    params["team"] = team

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/storage/artifacts",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedStoredArtifactList.from_dict(response.json())

    return response_200
