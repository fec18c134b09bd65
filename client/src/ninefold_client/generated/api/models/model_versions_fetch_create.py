from typing import Any

from ...client import AuthenticatedClient
from ...models.hub_import_request_request import HubImportRequestRequest
from ...models.model_version_detail import ModelVersionDetail
from ...types import UNSET, Unset


def model_versions_fetch_create(
    *,
    client: AuthenticatedClient,
    body: HubImportRequestRequest,
    dry_run: bool | Unset = False,
    idempotency_key: str | Unset = UNSET,
) -> ModelVersionDetail:
    """Import a repository of a model hub as a model version.

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
        "url": "/api/v1/model-versions/fetch",
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_201 = ModelVersionDetail.from_dict(response.json())

    return response_201
