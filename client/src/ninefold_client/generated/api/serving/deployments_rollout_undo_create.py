from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.deployment_detail import DeploymentDetail
from ...models.rollout_undo_request import RolloutUndoRequest
from ...types import UNSET, Unset


def deployments_rollout_undo_create(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: RolloutUndoRequest | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> DeploymentDetail:
    """Return to an earlier revision.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/deployments/{uid}/rollout/undo".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = DeploymentDetail.from_dict(response.json())

    return response_200
