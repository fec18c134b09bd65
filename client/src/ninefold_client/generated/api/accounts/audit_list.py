import datetime
from typing import Any

from ...client import AuthenticatedClient
from ...models.paginated_audit_list import PaginatedAuditList
from ...types import UNSET, Unset


def audit_list(
    *,
    client: AuthenticatedClient,
    action: str | Unset = UNSET,
    actor: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    object_: str | Unset = UNSET,
    page_size: int | Unset = 50,
    since: datetime.datetime | Unset = UNSET,
    team: str | Unset = UNSET,
    until: datetime.datetime | Unset = UNSET,
) -> PaginatedAuditList:
    """Audit log.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["action"] = action

    params["actor"] = actor

    params["cursor"] = cursor

    params["object"] = object_

    params["page_size"] = page_size

    json_since: str | Unset = UNSET
    if not isinstance(since, Unset):
        json_since = since.isoformat()
    params["since"] = json_since

    params["team"] = team

    json_until: str | Unset = UNSET
    if not isinstance(until, Unset):
        json_until = until.isoformat()
    params["until"] = json_until

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/audit",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedAuditList.from_dict(response.json())

    return response_200
