from typing import Any

from ...client import AuthenticatedClient
from ...models.isolations_list_state import (
    IsolationsListState,
)
from ...models.paginated_isolation_list import PaginatedIsolationList
from ...types import UNSET, Unset


def isolations_list(
    *,
    client: AuthenticatedClient,
    cluster: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    node: str | Unset = UNSET,
    page_size: int | Unset = 50,
    standing: bool | Unset = UNSET,
    state: IsolationsListState | Unset = UNSET,
) -> PaginatedIsolationList:
    """Isolations.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["cluster"] = cluster

    params["cursor"] = cursor

    params["node"] = node

    params["page_size"] = page_size

    params["standing"] = standing

    json_state: str | Unset = UNSET
    if not isinstance(state, Unset):
        json_state = state

    params["state"] = json_state

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/isolations",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedIsolationList.from_dict(response.json())

    return response_200
