from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.deployment_detail import DeploymentDetail


def deployments_destroy(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> Any | DeploymentDetail:
    """Delete a deployment.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "delete",
        "url": "/api/v1/deployments/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_202 = DeploymentDetail.from_dict(response.json())

    return response_202
