from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.deployment_detail import DeploymentDetail
from ...models.revision_request_request import RevisionRequestRequest
from ...types import UNSET, Unset


def deployments_revise_create(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: RevisionRequestRequest,
    idempotency_key: str | Unset = UNSET,
) -> DeploymentDetail:
    """Add a revision.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/deployments/{uid}/revise".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = DeploymentDetail.from_dict(response.json())

    return response_200
