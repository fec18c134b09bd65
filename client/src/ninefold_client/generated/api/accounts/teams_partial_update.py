from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.patched_team_change_request import PatchedTeamChangeRequest
from ...models.team import Team
from ...types import UNSET, Unset


def teams_partial_update(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: PatchedTeamChangeRequest | Unset = UNSET,
    dry_run: bool | Unset = False,
) -> Team:
    """Rename a team.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/api/v1/teams/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
        "params": params,
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = Team.from_dict(response.json())

    return response_200
