from typing import Any

from ...client import AuthenticatedClient
from ...models.alerts_list_severity import (
    AlertsListSeverity,
)
from ...models.paginated_alert_group_list import PaginatedAlertGroupList
from ...types import UNSET, Unset


def alerts_list(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    firing: bool | Unset = UNSET,
    page_size: int | Unset = 50,
    rule: str | Unset = UNSET,
    severity: AlertsListSeverity | Unset = UNSET,
) -> PaginatedAlertGroupList:
    """Alert groups.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    params["firing"] = firing

    params["page_size"] = page_size

    params["rule"] = rule

    json_severity: str | Unset = UNSET
    if not isinstance(severity, Unset):
        json_severity = severity

    params["severity"] = json_severity

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/alerts",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedAlertGroupList.from_dict(response.json())

    return response_200
