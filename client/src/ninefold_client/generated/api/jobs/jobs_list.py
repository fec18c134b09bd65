from typing import Any

from ...client import AuthenticatedClient
from ...models.jobs_list_kind_item import JobsListKindItem
from ...models.jobs_list_state_item import JobsListStateItem
from ...models.paginated_job_list import PaginatedJobList
from ...types import UNSET, Unset


def jobs_list(
    *,
    client: AuthenticatedClient,
    created_by: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    kind: list[JobsListKindItem] | Unset = UNSET,
    model: str | Unset = UNSET,
    model_version: str | Unset = UNSET,
    page_size: int | Unset = 50,
    state: list[JobsListStateItem] | Unset = UNSET,
    team: str | Unset = UNSET,
    text: str | Unset = UNSET,
) -> PaginatedJobList:
    """Jobs.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["created_by"] = created_by

    params["cursor"] = cursor

    json_kind: list[str] | Unset = UNSET
    if not isinstance(kind, Unset):
        json_kind = []
        for kind_item_data in kind:
            kind_item: str = kind_item_data
            json_kind.append(kind_item)

    params["kind"] = json_kind

    params["model"] = model

    params["model_version"] = model_version

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
        "url": "/api/v1/jobs",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedJobList.from_dict(response.json())

    return response_200
