from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.cluster_detail import ClusterDetail
from ...models.patched_cluster_change_request import PatchedClusterChangeRequest
from ...types import UNSET, Unset


def clusters_partial_update(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: PatchedClusterChangeRequest | Unset = UNSET,
) -> ClusterDetail:
    """Change a cluster.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/api/v1/clusters/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = ClusterDetail.from_dict(response.json())

    return response_200
