from typing import Any

from ...client import AuthenticatedClient
from ...models.apply_set import ApplySet
from ...models.apply_set_create_request import ApplySetCreateRequest
from ...types import UNSET, Unset


def apply_sets_create(
    *,
    client: AuthenticatedClient,
    body: ApplySetCreateRequest,
    idempotency_key: str | Unset = UNSET,
) -> ApplySet:
    """Create an apply set.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/apply-sets",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_201 = ApplySet.from_dict(response.json())

    return response_201
