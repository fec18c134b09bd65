from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.member import Member
from ...models.team_member_roles_request import TeamMemberRolesRequest
from ...types import UNSET, Unset


def teams_members_update(
    uid: str,
    user_uid: str,
    *,
    client: AuthenticatedClient,
    body: TeamMemberRolesRequest,
    dry_run: bool | Unset = False,
) -> Member:
    """Set the roles of a member.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/api/v1/teams/{uid}/members/{user_uid}".format(
            uid=quote(str(uid), safe=""),
            user_uid=quote(str(user_uid), safe=""),
        ),
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = Member.from_dict(response.json())

    return response_200
