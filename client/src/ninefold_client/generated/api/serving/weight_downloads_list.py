from typing import Any

from ...client import AuthenticatedClient
from ...models.paginated_weight_download_list import PaginatedWeightDownloadList
from ...models.weight_downloads_list_state_item import (
    WeightDownloadsListStateItem,
)
from ...types import UNSET, Unset


def weight_downloads_list(
    *,
    client: AuthenticatedClient,
    cluster: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    model_version: str | Unset = UNSET,
    node: str | Unset = UNSET,
    page_size: int | Unset = 50,
    state: list[WeightDownloadsListStateItem] | Unset = UNSET,
    team: str | Unset = UNSET,
) -> PaginatedWeightDownloadList:
    """Weight downloads.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["cluster"] = cluster

    params["cursor"] = cursor

    params["model_version"] = model_version

    params["node"] = node

    params["page_size"] = page_size

    json_state: list[str] | Unset = UNSET
    if not isinstance(state, Unset):
        json_state = []
        for state_item_data in state:
            state_item: str = state_item_data
            json_state.append(state_item)

    params["state"] = json_state

    params["team"] = team

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/weight-downloads",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedWeightDownloadList.from_dict(response.json())

    return response_200
