from typing import Any

from ...client import AuthenticatedClient
from ...models.topology import Topology
from ...types import UNSET, Unset


def topology_retrieve(
    *,
    client: AuthenticatedClient,
    at: str | Unset = "",
) -> Topology:
    """Fleet topology and allocations.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["at"] = at

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/topology",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = Topology.from_dict(response.json())

    return response_200
