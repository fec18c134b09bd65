from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.reclaim_preview import ReclaimPreview
from ...types import UNSET, Unset


def queues_reclaim_preview_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
    cards: int,
    chip: str,
    together: int | Unset = 1,
) -> ReclaimPreview:
    """Reclaim preview of a queue.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["cards"] = cards

    params["chip"] = chip

    params["together"] = together

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/queues/{uid}/reclaim-preview".format(
            uid=quote(str(uid), safe=""),
        ),
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = ReclaimPreview.from_dict(response.json())

    return response_200
