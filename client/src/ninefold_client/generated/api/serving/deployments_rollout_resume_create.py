from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.deployment_detail import DeploymentDetail
from ...types import UNSET, Unset


def deployments_rollout_resume_create(
    uid: str,
    *,
    client: AuthenticatedClient,
    idempotency_key: str | Unset = UNSET,
) -> DeploymentDetail:
    """Resume the rollout of a deployment.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/deployments/{uid}/rollout/resume".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = DeploymentDetail.from_dict(response.json())

    return response_200
