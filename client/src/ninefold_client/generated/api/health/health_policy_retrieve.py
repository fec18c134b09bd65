from typing import Any

from ...client import AuthenticatedClient
from ...models.health_policy import HealthPolicy


def health_policy_retrieve(
    *,
    client: AuthenticatedClient,
) -> HealthPolicy:
    """The health policy.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/health-policy",
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = HealthPolicy.from_dict(response.json())

    return response_200
