from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.alert_receiver import AlertReceiver


def alert_receivers_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> AlertReceiver:
    """Get an alert receiver.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/alert-receivers/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = AlertReceiver.from_dict(response.json())

    return response_200
