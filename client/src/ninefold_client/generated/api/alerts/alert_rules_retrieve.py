from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.alert_rule import AlertRule


def alert_rules_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> AlertRule:
    """An alert rule.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/alert-rules/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = AlertRule.from_dict(response.json())

    return response_200
