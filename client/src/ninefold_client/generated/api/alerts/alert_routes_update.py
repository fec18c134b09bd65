from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.alert_route import AlertRoute
from ...models.alert_route_write_request import AlertRouteWriteRequest
from ...types import UNSET, Unset


def alert_routes_update(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: AlertRouteWriteRequest,
    dry_run: bool | Unset = False,
) -> AlertRoute:
    """Change an alert route.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/api/v1/alert-routes/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = AlertRoute.from_dict(response.json())

    return response_200
