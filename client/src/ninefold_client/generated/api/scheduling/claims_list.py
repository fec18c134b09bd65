from typing import Any

from ...client import AuthenticatedClient
from ...models.claims_list_state_item import (
    ClaimsListStateItem,
)
from ...models.paginated_claim_list import PaginatedClaimList
from ...types import UNSET, Unset


def claims_list(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    owner: str | Unset = UNSET,
    page_size: int | Unset = 50,
    queue: str | Unset = UNSET,
    state: list[ClaimsListStateItem] | Unset = UNSET,
    team: str | Unset = UNSET,
) -> PaginatedClaimList:
    """Claims.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    params["owner"] = owner

    params["page_size"] = page_size

    params["queue"] = queue

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
        "url": "/api/v1/claims",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedClaimList.from_dict(response.json())

    return response_200
