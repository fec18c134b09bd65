from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.kubernetes_cluster_detail import KubernetesClusterDetail
from ...models.local_cluster_detail import LocalClusterDetail
from ...models.patched_cluster_change_request import PatchedClusterChangeRequest
from ...models.simulated_cluster_detail import SimulatedClusterDetail
from ...models.volcano_cluster_detail import VolcanoClusterDetail
from ...types import UNSET, Unset


def clusters_partial_update(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: PatchedClusterChangeRequest | Unset = UNSET,
    dry_run: bool | Unset = False,
) -> KubernetesClusterDetail | LocalClusterDetail | SimulatedClusterDetail | VolcanoClusterDetail:
    """Change a cluster.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/api/v1/clusters/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
        "params": params,
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)

    def _parse_response_200(
        data: object,
    ) -> (
        KubernetesClusterDetail | LocalClusterDetail | SimulatedClusterDetail | VolcanoClusterDetail
    ):
        try:
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_cluster_detail_type_0 = KubernetesClusterDetail.from_dict(data)

            return componentsschemas_cluster_detail_type_0
        except (TypeError, ValueError, AttributeError, KeyError):
            pass
        try:
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_cluster_detail_type_1 = LocalClusterDetail.from_dict(data)

            return componentsschemas_cluster_detail_type_1
        except (TypeError, ValueError, AttributeError, KeyError):
            pass
        try:
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_cluster_detail_type_2 = SimulatedClusterDetail.from_dict(data)

            return componentsschemas_cluster_detail_type_2
        except (TypeError, ValueError, AttributeError, KeyError):
            pass
        if not isinstance(data, dict):
            raise TypeError()
        componentsschemas_cluster_detail_type_3 = VolcanoClusterDetail.from_dict(data)

        return componentsschemas_cluster_detail_type_3

    response_200 = _parse_response_200(response.json())

    return response_200
