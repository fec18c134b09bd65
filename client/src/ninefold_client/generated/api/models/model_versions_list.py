from typing import Any

from ...client import AuthenticatedClient
from ...models.model_versions_list_state_item import (
    ModelVersionsListStateItem,
)
from ...models.paginated_model_version_list import PaginatedModelVersionList
from ...types import UNSET, Unset


def model_versions_list(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    job: str | Unset = UNSET,
    model: str | Unset = UNSET,
    page_size: int | Unset = 50,
    state: list[ModelVersionsListStateItem] | Unset = UNSET,
    team: str | Unset = UNSET,
) -> PaginatedModelVersionList:
    """Model versions.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    params["job"] = job

    params["model"] = model

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
        "url": "/api/v1/model-versions",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedModelVersionList.from_dict(response.json())

    return response_200
