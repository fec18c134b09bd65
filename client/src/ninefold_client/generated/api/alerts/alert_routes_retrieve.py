from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.alert_route import AlertRoute


def alert_routes_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> AlertRoute:
    """Get an alert route.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/alert-routes/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = AlertRoute.from_dict(response.json())

    return response_200
