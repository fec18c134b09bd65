from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.gate_override_request import GateOverrideRequest
from ...models.pipeline import Pipeline
from ...types import UNSET, Unset


def pipelines_gate_override_create(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: GateOverrideRequest,
    idempotency_key: str | Unset = UNSET,
) -> Pipeline:
    """Approve a pipeline that failed a gate.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/pipelines/{uid}/gate-override".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = Pipeline.from_dict(response.json())

    return response_200
