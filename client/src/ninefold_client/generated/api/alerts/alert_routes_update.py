from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.alert_route import AlertRoute
from ...models.alert_route_write_request import AlertRouteWriteRequest


def alert_routes_update(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: AlertRouteWriteRequest,
) -> AlertRoute:
    """Change an alert route.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/api/v1/alert-routes/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = AlertRoute.from_dict(response.json())

    return response_200
