from typing import Any

from ...client import AuthenticatedClient
from ...models.cluster_create_request import ClusterCreateRequest
from ...models.cluster_detail import ClusterDetail
from ...types import UNSET, Unset


def clusters_create(
    *,
    client: AuthenticatedClient,
    body: ClusterCreateRequest,
    idempotency_key: str | Unset = UNSET,
) -> ClusterDetail:
    """Register a cluster.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/clusters",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_201 = ClusterDetail.from_dict(response.json())

    return response_201
