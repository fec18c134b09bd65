import datetime
from typing import Any

from ...client import AuthenticatedClient
from ...models.usage_months import UsageMonths
from ...models.usage_months_retrieve_by import (
    UsageMonthsRetrieveBy,
)
from ...types import UNSET, Unset


def usage_months_retrieve(
    *,
    client: AuthenticatedClient,
    by: UsageMonthsRetrieveBy | Unset = "team",
    first: datetime.date | Unset = UNSET,
    last: datetime.date | Unset = UNSET,
) -> UsageMonths:
    """Usage and cost by month.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    json_by: str | Unset = UNSET
    if not isinstance(by, Unset):
        json_by = by

    params["by"] = json_by

    json_first: str | Unset = UNSET
    if not isinstance(first, Unset):
        json_first = first.isoformat()
    params["first"] = json_first

    json_last: str | Unset = UNSET
    if not isinstance(last, Unset):
        json_last = last.isoformat()
    params["last"] = json_last

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/usage/months",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = UsageMonths.from_dict(response.json())

    return response_200
