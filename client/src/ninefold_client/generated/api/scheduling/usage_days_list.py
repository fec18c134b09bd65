import datetime
from typing import Any

from ...client import AuthenticatedClient
from ...models.paginated_usage_day_list import PaginatedUsageDayList
from ...models.usage_days_list_work_kind import (
    UsageDaysListWorkKind,
)
from ...types import UNSET, Unset


def usage_days_list(
    *,
    client: AuthenticatedClient,
    chip: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    first: datetime.date | Unset = UNSET,
    last: datetime.date | Unset = UNSET,
    page_size: int | Unset = 50,
    queue: str | Unset = UNSET,
    team: str | Unset = UNSET,
    user: str | Unset = UNSET,
    work_kind: UsageDaysListWorkKind | Unset = UNSET,
) -> PaginatedUsageDayList:
    """Usage by day.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["chip"] = chip

    params["cursor"] = cursor

    json_first: str | Unset = UNSET
    if not isinstance(first, Unset):
        json_first = first.isoformat()
    params["first"] = json_first

    json_last: str | Unset = UNSET
    if not isinstance(last, Unset):
        json_last = last.isoformat()
    params["last"] = json_last

    params["page_size"] = page_size

    params["queue"] = queue

    params["team"] = team

    params["user"] = user

    json_work_kind: str | Unset = UNSET
    if not isinstance(work_kind, Unset):
        json_work_kind = work_kind

    params["work_kind"] = json_work_kind

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/usage/days",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedUsageDayList.from_dict(response.json())

    return response_200
