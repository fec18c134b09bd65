from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.deployment_detail import DeploymentDetail


def deployments_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> DeploymentDetail:
    """A deployment with its revisions and replicas.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/deployments/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = DeploymentDetail.from_dict(response.json())

    return response_200
