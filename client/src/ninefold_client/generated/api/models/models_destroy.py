from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient


def models_destroy(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> httpx.Response:
    """Delete a model with its versions.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "delete",
        "url": "/api/v1/models/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    return response
