from typing import Any

from ...client import AuthenticatedClient
from ...models.health_policy import HealthPolicy
from ...models.patched_health_policy_change_request import (
    PatchedHealthPolicyChangeRequest,
)
from ...types import UNSET, Unset


def health_policy_partial_update(
    *,
    client: AuthenticatedClient,
    body: PatchedHealthPolicyChangeRequest | Unset = UNSET,
    dry_run: bool | Unset = False,
) -> HealthPolicy:
    """Change the health policy.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/api/v1/health-policy",
        "params": params,
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = HealthPolicy.from_dict(response.json())

    return response_200
