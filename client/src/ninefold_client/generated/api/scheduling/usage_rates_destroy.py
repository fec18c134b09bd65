from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient


def usage_rates_destroy(
    chip: str,
    *,
    client: AuthenticatedClient,
) -> httpx.Response:
    """Delete the rate of a chip.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "delete",
        "url": "/api/v1/usage/rates/{chip}".format(
            chip=quote(str(chip), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    return response
