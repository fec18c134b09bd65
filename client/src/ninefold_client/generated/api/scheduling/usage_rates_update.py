from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.card_rate import CardRate
from ...models.card_rate_change_request import CardRateChangeRequest


def usage_rates_update(
    chip: str,
    *,
    client: AuthenticatedClient,
    body: CardRateChangeRequest,
) -> CardRate:
    """Set the rate of a chip.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/api/v1/usage/rates/{chip}".format(
            chip=quote(str(chip), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = CardRate.from_dict(response.json())

    return response_200
