from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.claim_forecast import ClaimForecast


def claims_forecast_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> ClaimForecast:
    """Forecast of a pending claim.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/claims/{uid}/forecast".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = ClaimForecast.from_dict(response.json())

    return response_200
