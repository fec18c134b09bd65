import datetime
from typing import Any

from ...client import AuthenticatedClient
from ...models.gateway_usage_totals import GatewayUsageTotals
from ...models.usage_totals_retrieve_outcome import (
    UsageTotalsRetrieveOutcome,
)
from ...types import UNSET, Unset


def usage_totals_retrieve(
    *,
    client: AuthenticatedClient,
    from_: datetime.datetime | Unset = UNSET,
    key: str | Unset = UNSET,
    outcome: UsageTotalsRetrieveOutcome | Unset = UNSET,
    route: str | Unset = UNSET,
    team: str | Unset = UNSET,
    to: datetime.datetime | Unset = UNSET,
) -> GatewayUsageTotals:
    """Total requests and tokens.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    json_from_: str | Unset = UNSET
    if not isinstance(from_, Unset):
        json_from_ = from_.isoformat()
    params["from"] = json_from_

    params["key"] = key

    json_outcome: str | Unset = UNSET
    if not isinstance(outcome, Unset):
        json_outcome = outcome

    params["outcome"] = json_outcome

    params["route"] = route

    params["team"] = team

    json_to: str | Unset = UNSET
    if not isinstance(to, Unset):
        json_to = to.isoformat()
    params["to"] = json_to

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/usage/totals",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = GatewayUsageTotals.from_dict(response.json())

    return response_200
