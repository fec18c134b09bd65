from typing import Any

from ...client import AuthenticatedClient
from ...models.paginated_weight_download_list import PaginatedWeightDownloadList
from ...models.weight_download_create_request import WeightDownloadCreateRequest
from ...types import UNSET, Unset


def weight_downloads_create(
    *,
    client: AuthenticatedClient,
    body: WeightDownloadCreateRequest,
    cursor: str | Unset = UNSET,
    dry_run: bool | Unset = False,
    page_size: int | Unset = 50,
    idempotency_key: str | Unset = UNSET,
) -> PaginatedWeightDownloadList:
    """Pre-download weights to nodes.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    params["dry_run"] = dry_run

    params["page_size"] = page_size

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/weight-downloads",
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_201 = PaginatedWeightDownloadList.from_dict(response.json())

    return response_201
