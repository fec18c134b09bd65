from typing import Any

from ...client import AuthenticatedClient
from ...models.dataset_upload_request import DatasetUploadRequest
from ...models.dataset_version_detail import DatasetVersionDetail
from ...types import UNSET, Unset


def datasets_create(
    *,
    client: AuthenticatedClient,
    body: DatasetUploadRequest,
    dry_run: bool | Unset = False,
    idempotency_key: str | Unset = UNSET,
) -> DatasetVersionDetail:
    """Upload a file as a new dataset or version.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/datasets",
        "params": params,
    }

    _kwargs["files"] = body.to_multipart()

    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_201 = DatasetVersionDetail.from_dict(response.json())

    return response_201
