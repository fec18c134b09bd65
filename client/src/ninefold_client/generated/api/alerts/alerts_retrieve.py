from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.alert_group_detail import AlertGroupDetail


def alerts_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> AlertGroupDetail:
    """Get an alert group with its alerts.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/alerts/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = AlertGroupDetail.from_dict(response.json())

    return response_200
