from typing import Any

from ...client import AuthenticatedClient
from ...models.deployment_create_request import DeploymentCreateRequest
from ...models.deployment_detail import DeploymentDetail
from ...types import UNSET, Unset


def deployments_create(
    *,
    client: AuthenticatedClient,
    body: DeploymentCreateRequest,
    dry_run: bool | Unset = False,
    idempotency_key: str | Unset = UNSET,
) -> DeploymentDetail:
    """Deploy a model version.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/deployments",
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_201 = DeploymentDetail.from_dict(response.json())

    return response_201
