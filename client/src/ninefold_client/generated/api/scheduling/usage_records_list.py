import datetime
from typing import Any

from ...client import AuthenticatedClient
from ...models.paginated_usage_record_list import PaginatedUsageRecordList
from ...models.usage_records_list_format import (
    UsageRecordsListFormat,
)
from ...models.usage_records_list_work_kind import (
    UsageRecordsListWorkKind,
)
from ...types import UNSET, Unset


def usage_records_list(
    *,
    client: AuthenticatedClient,
    chip: str | Unset = UNSET,
    claim: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    format_: UsageRecordsListFormat | Unset = UNSET,
    page_size: int | Unset = 50,
    queue: str | Unset = UNSET,
    since: datetime.datetime | Unset = UNSET,
    team: str | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
    user: str | Unset = UNSET,
    work: str | Unset = UNSET,
    work_kind: UsageRecordsListWorkKind | Unset = UNSET,
) -> PaginatedUsageRecordList:
    """Usage records.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["chip"] = chip

    params["claim"] = claim

    params["cursor"] = cursor

    json_format_: str | Unset = UNSET
    if not isinstance(format_, Unset):
        json_format_ = format_

    params["format"] = json_format_

    params["page_size"] = page_size

    params["queue"] = queue

    json_since: str | Unset = UNSET
    if not isinstance(since, Unset):
        json_since = since.isoformat()
    params["since"] = json_since

    params["team"] = team

    json_until: str | Unset = UNSET
    if not isinstance(until, Unset):
        json_until = until.isoformat()
    params["until"] = json_until

    params["user"] = user

    params["work"] = work

    json_work_kind: str | Unset = UNSET
    if not isinstance(work_kind, Unset):
        json_work_kind = work_kind

    params["work_kind"] = json_work_kind

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/usage/records",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedUsageRecordList.from_dict(response.json())

    return response_200
