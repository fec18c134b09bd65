from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.card_rate import CardRate
from ...models.card_rate_change_request import CardRateChangeRequest
from ...types import UNSET, Unset


def usage_rates_update(
    chip: str,
    *,
    client: AuthenticatedClient,
    body: CardRateChangeRequest,
    dry_run: bool | Unset = False,
) -> CardRate:
    """Set the rate of a chip.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/api/v1/usage/rates/{chip}".format(
            chip=quote(str(chip), safe=""),
        ),
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = CardRate.from_dict(response.json())

    return response_200
