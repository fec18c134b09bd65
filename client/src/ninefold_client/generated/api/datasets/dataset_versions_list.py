from typing import Any

from ...client import AuthenticatedClient
from ...models.paginated_dataset_version_list import PaginatedDatasetVersionList
from ...types import UNSET, Unset


def dataset_versions_list(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    dataset: str | Unset = UNSET,
    page_size: int | Unset = 50,
    team: str | Unset = UNSET,
) -> PaginatedDatasetVersionList:
    """Dataset versions.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    params["dataset"] = dataset

    params["page_size"] = page_size

    params["team"] = team

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/dataset-versions",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedDatasetVersionList.from_dict(response.json())

    return response_200
