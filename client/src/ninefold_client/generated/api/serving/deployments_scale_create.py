from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.deployment_detail import DeploymentDetail
from ...models.deployment_scale_request import DeploymentScaleRequest
from ...types import UNSET, Unset


def deployments_scale_create(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: DeploymentScaleRequest,
    dry_run: bool | Unset = False,
    idempotency_key: str | Unset = UNSET,
) -> DeploymentDetail:
    """Change the number of replicas.

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
        "url": "/api/v1/deployments/{uid}/scale".format(
            uid=quote(str(uid), safe=""),
        ),
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = DeploymentDetail.from_dict(response.json())

    return response_200
