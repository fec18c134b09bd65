from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.team import Team


def teams_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> Team:
    """A team.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/teams/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = Team.from_dict(response.json())

    return response_200
