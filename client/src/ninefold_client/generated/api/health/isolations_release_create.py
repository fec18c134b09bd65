from typing import Any

from ...client import AuthenticatedClient
from ...models.changed_isolations import ChangedIsolations
from ...models.isolation_release_request import IsolationReleaseRequest
from ...types import UNSET, Unset


def isolations_release_create(
    *,
    client: AuthenticatedClient,
    body: IsolationReleaseRequest,
    idempotency_key: str | Unset = UNSET,
) -> ChangedIsolations:
    """Return cards and nodes to service.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/isolations/release",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = ChangedIsolations.from_dict(response.json())

    return response_200
