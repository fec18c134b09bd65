from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.cluster import Cluster
from ...models.kubernetes_cluster_detail import KubernetesClusterDetail
from ...models.local_cluster_detail import LocalClusterDetail
from ...models.simulated_cluster_detail import SimulatedClusterDetail
from ...models.volcano_cluster_detail import VolcanoClusterDetail


def clusters_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> (
    Cluster
    | KubernetesClusterDetail
    | LocalClusterDetail
    | SimulatedClusterDetail
    | VolcanoClusterDetail
):
    """A cluster.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/clusters/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)

    def _parse_response_200(
        data: object,
    ) -> (
        Cluster
        | KubernetesClusterDetail
        | LocalClusterDetail
        | SimulatedClusterDetail
        | VolcanoClusterDetail
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
        try:
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_cluster_detail_type_3 = VolcanoClusterDetail.from_dict(data)

            return componentsschemas_cluster_detail_type_3
        except (TypeError, ValueError, AttributeError, KeyError):
            pass
        if not isinstance(data, dict):
            raise TypeError()
        response_200_type_1 = Cluster.from_dict(data)

        return response_200_type_1

    response_200 = _parse_response_200(response.json())

    return response_200
