from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.weight_download import WeightDownload


def weight_downloads_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> WeightDownload:
    """A weight download.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/weight-downloads/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = WeightDownload.from_dict(response.json())

    return response_200
