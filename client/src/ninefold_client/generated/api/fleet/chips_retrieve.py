from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.chip import Chip


def chips_retrieve(
    name: str,
    *,
    client: AuthenticatedClient,
) -> Chip:
    """A chip.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/chips/{name}".format(
            name=quote(str(name), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = Chip.from_dict(response.json())

    return response_200
