from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.cluster import Cluster
from ...models.cluster_detail import ClusterDetail


def clusters_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> Cluster | ClusterDetail:
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

    def _parse_response_200(data: object) -> Cluster | ClusterDetail:
        try:
            if not isinstance(data, dict):
                raise TypeError()
            response_200_type_0 = ClusterDetail.from_dict(data)

            return response_200_type_0
        except (TypeError, ValueError, AttributeError, KeyError):
            pass
        if not isinstance(data, dict):
            raise TypeError()
        response_200_type_1 = Cluster.from_dict(data)

        return response_200_type_1

    response_200 = _parse_response_200(response.json())

    return response_200
