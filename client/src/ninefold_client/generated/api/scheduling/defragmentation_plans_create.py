from typing import Any

from ...client import AuthenticatedClient
from ...models.defragmentation_plan import DefragmentationPlan
from ...models.defragmentation_request_request import DefragmentationRequestRequest
from ...types import UNSET, Unset


def defragmentation_plans_create(
    *,
    client: AuthenticatedClient,
    body: DefragmentationRequestRequest,
    idempotency_key: str | Unset = UNSET,
) -> DefragmentationPlan:
    """Propose a defragmentation plan.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/defragmentation-plans",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = DefragmentationPlan.from_dict(response.json())

    return response_200
