from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient


def datasets_destroy(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> httpx.Response:
    """Delete a dataset with its versions.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "delete",
        "url": "/api/v1/datasets/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    return response
