from typing import Any

from ...client import AuthenticatedClient
from ...models.cards_list_state_item import (
    CardsListStateItem,
)
from ...models.paginated_card_list import PaginatedCardList
from ...types import UNSET, Unset


def cards_list(
    *,
    client: AuthenticatedClient,
    chip: str | Unset = UNSET,
    cluster: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    node: str | Unset = UNSET,
    page_size: int | Unset = 50,
    state: list[CardsListStateItem] | Unset = UNSET,
) -> PaginatedCardList:
    """Cards.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["chip"] = chip

    params["cluster"] = cluster

    params["cursor"] = cursor

    params["node"] = node

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
        "url": "/api/v1/cards",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedCardList.from_dict(response.json())

    return response_200
