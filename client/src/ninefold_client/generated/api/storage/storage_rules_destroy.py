from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient


def storage_rules_destroy(
    team: str,
    *,
    client: AuthenticatedClient,
) -> httpx.Response:
    """Reset the retention rules of a team to the default.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "delete",
        "url": "/api/v1/storage/rules/{team}".format(
            team=quote(str(team), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    return response
