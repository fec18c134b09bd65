from typing import Any

from ...client import AuthenticatedClient
from ...models.paginated_dataset_list import PaginatedDatasetList
from ...types import UNSET, Unset


def datasets_list(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    name: str | Unset = UNSET,
    page_size: int | Unset = 50,
    team: str | Unset = UNSET,
) -> PaginatedDatasetList:
    """Datasets.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    params["name"] = name

    params["page_size"] = page_size

    params["team"] = team

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/datasets",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedDatasetList.from_dict(response.json())

    return response_200
