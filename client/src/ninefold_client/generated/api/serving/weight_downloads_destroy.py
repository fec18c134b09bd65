from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.weight_download import WeightDownload
from ...types import UNSET, Unset


def weight_downloads_destroy(
    uid: str,
    *,
    client: AuthenticatedClient,
    dry_run: bool | Unset = False,
) -> Any | WeightDownload:
    """Cancel or delete a weight download.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "delete",
        "url": "/api/v1/weight-downloads/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_202 = WeightDownload.from_dict(response.json())

    return response_202
