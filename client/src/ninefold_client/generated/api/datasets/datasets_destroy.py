from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient
from ...types import UNSET, Unset


def datasets_destroy(
    uid: str,
    *,
    client: AuthenticatedClient,
    dry_run: bool | Unset = False,
) -> httpx.Response:
    """Delete a dataset with its versions.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "delete",
        "url": "/api/v1/datasets/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    return response
