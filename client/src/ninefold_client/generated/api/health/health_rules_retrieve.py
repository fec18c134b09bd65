from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.health_rule import HealthRule


def health_rules_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> HealthRule:
    """Get a health rule.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/health-rules/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = HealthRule.from_dict(response.json())

    return response_200
