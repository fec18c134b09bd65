from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.gate_override_reason_request import GateOverrideReasonRequest
from ...models.model_version_detail import ModelVersionDetail
from ...types import UNSET, Unset


def model_versions_reject_create(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: GateOverrideReasonRequest,
    idempotency_key: str | Unset = UNSET,
) -> ModelVersionDetail:
    """Reject a quantized version.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/model-versions/{uid}/reject".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = ModelVersionDetail.from_dict(response.json())

    return response_200
