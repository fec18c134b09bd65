from typing import Any

from ...client import AuthenticatedClient
from ...models.burn_ins_requested import BurnInsRequested
from ...models.isolation_uids_request import IsolationUidsRequest
from ...types import UNSET, Unset


def isolations_test_create(
    *,
    client: AuthenticatedClient,
    body: IsolationUidsRequest,
    idempotency_key: str | Unset = UNSET,
) -> BurnInsRequested:
    """Request burn-in runs of cards and nodes.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/isolations/test",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = BurnInsRequested.from_dict(response.json())

    return response_200
