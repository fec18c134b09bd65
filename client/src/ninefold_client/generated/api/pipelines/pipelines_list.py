from typing import Any

from ...client import AuthenticatedClient
from ...models.paginated_pipeline_list import PaginatedPipelineList
from ...models.pipelines_list_state_item import (
    PipelinesListStateItem,
)
from ...types import UNSET, Unset


def pipelines_list(
    *,
    client: AuthenticatedClient,
    created_by: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    page_size: int | Unset = 50,
    state: list[PipelinesListStateItem] | Unset = UNSET,
    team: str | Unset = UNSET,
    text: str | Unset = UNSET,
) -> PaginatedPipelineList:
    """Pipelines.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["created_by"] = created_by

    params["cursor"] = cursor

    params["page_size"] = page_size

    json_state: list[str] | Unset = UNSET
    if not isinstance(state, Unset):
        json_state = []
        for state_item_data in state:
            state_item: str = state_item_data
            json_state.append(state_item)

    params["state"] = json_state

    params["team"] = team

    params["text"] = text

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipelines",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedPipelineList.from_dict(response.json())

    return response_200
