from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.claim_explanation import ClaimExplanation


def claims_explanation_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> ClaimExplanation:
    """Pending reason or placement of a claim.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/claims/{uid}/explanation".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = ClaimExplanation.from_dict(response.json())

    return response_200
