from typing import Any

from ...client import AuthenticatedClient
from ...models.fault_acknowledge_request import FaultAcknowledgeRequest
from ...models.fault_acknowledged import FaultAcknowledged
from ...types import UNSET, Unset


def faults_acknowledge_create(
    *,
    client: AuthenticatedClient,
    body: FaultAcknowledgeRequest,
    idempotency_key: str | Unset = UNSET,
) -> FaultAcknowledged:
    """Acknowledge faults.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/faults/acknowledge",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = FaultAcknowledged.from_dict(response.json())

    return response_200
