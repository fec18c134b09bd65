from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient


def teams_members_destroy(
    uid: str,
    user_uid: str,
    *,
    client: AuthenticatedClient,
) -> httpx.Response:
    """Remove a member from a team.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "delete",
        "url": "/api/v1/teams/{uid}/members/{user_uid}".format(
            uid=quote(str(uid), safe=""),
            user_uid=quote(str(user_uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    return response
