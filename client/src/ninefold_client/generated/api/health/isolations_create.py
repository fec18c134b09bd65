from typing import Any

from ...client import AuthenticatedClient
from ...models.changed_isolations import ChangedIsolations
from ...models.isolation_create_request import IsolationCreateRequest
from ...types import UNSET, Unset


def isolations_create(
    *,
    client: AuthenticatedClient,
    body: IsolationCreateRequest,
    idempotency_key: str | Unset = UNSET,
) -> ChangedIsolations:
    """Isolate cards and nodes.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/isolations",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_201 = ChangedIsolations.from_dict(response.json())

    return response_201
