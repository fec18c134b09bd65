from typing import Any

from ...client import AuthenticatedClient
from ...models.priority_class import PriorityClass
from ...models.priority_class_write_request import PriorityClassWriteRequest
from ...types import UNSET, Unset


def priority_classes_create(
    *,
    client: AuthenticatedClient,
    body: PriorityClassWriteRequest,
    dry_run: bool | Unset = False,
    idempotency_key: str | Unset = UNSET,
) -> PriorityClass:
    """Create a priority class.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/priority-classes",
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_201 = PriorityClass.from_dict(response.json())

    return response_201
