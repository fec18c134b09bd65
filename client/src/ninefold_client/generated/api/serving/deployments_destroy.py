from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.deployment_detail import DeploymentDetail
from ...types import UNSET, Unset


def deployments_destroy(
    uid: str,
    *,
    client: AuthenticatedClient,
    dry_run: bool | Unset = False,
) -> Any | DeploymentDetail:
    """Delete a deployment.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "delete",
        "url": "/api/v1/deployments/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_202 = DeploymentDetail.from_dict(response.json())

    return response_202
