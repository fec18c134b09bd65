from typing import Any

from ...client import AuthenticatedClient
from ...models.defragmentation_plans_list_state_item import (
    DefragmentationPlansListStateItem,
)
from ...models.paginated_defragmentation_plan_list import (
    PaginatedDefragmentationPlanList,
)
from ...types import UNSET, Unset


def defragmentation_plans_list(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    page_size: int | Unset = 50,
    state: list[DefragmentationPlansListStateItem] | Unset = UNSET,
) -> PaginatedDefragmentationPlanList:
    """Defragmentation plans.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    params["page_size"] = page_size

    json_state: list[str] | Unset = UNSET
    if not isinstance(state, Unset):
        json_state = []
        for state_item_data in state:
            state_item: str = state_item_data
            json_state.append(state_item)

    params["state"] = json_state

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/defragmentation-plans",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedDefragmentationPlanList.from_dict(response.json())

    return response_200
