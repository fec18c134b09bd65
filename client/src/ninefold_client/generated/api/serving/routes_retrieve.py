from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.route import Route


def routes_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> Route:
    """A route with its backends.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/routes/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = Route.from_dict(response.json())

    return response_200
