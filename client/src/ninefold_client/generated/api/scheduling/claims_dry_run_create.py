from typing import Any

from ...client import AuthenticatedClient
from ...models.claim_dry_run import ClaimDryRun
from ...models.claim_dry_run_request_request import ClaimDryRunRequestRequest


def claims_dry_run_create(
    *,
    client: AuthenticatedClient,
    body: ClaimDryRunRequestRequest,
) -> ClaimDryRun:
    """Dry run of a claim.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/claims/dry-run",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = ClaimDryRun.from_dict(response.json())

    return response_200
