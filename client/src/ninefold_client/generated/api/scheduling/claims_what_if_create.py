from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.what_if_changes_request import WhatIfChangesRequest
from ...models.what_if_outcome import WhatIfOutcome
from ...types import UNSET, Unset


def claims_what_if_create(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: WhatIfChangesRequest | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,
) -> WhatIfOutcome:
    """Request a what-if for a claim.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/claims/{uid}/what-if".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_202 = WhatIfOutcome.from_dict(response.json())

    return response_202
