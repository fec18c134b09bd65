from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.retention_rules_request import RetentionRulesRequest
from ...models.team_retention_rules import TeamRetentionRules
from ...types import UNSET, Unset


def storage_rules_update(
    team: str,
    *,
    client: AuthenticatedClient,
    body: RetentionRulesRequest,
    dry_run: bool | Unset = False,
) -> TeamRetentionRules:
    """Set the retention rules of a team.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/api/v1/storage/rules/{team}".format(
            team=quote(str(team), safe=""),
        ),
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = TeamRetentionRules.from_dict(response.json())

    return response_200
