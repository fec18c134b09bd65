from typing import Any

from ...client import AuthenticatedClient
from ...models.paginated_node_list import PaginatedNodeList
from ...types import UNSET, Unset


def nodes_list(
    *,
    client: AuthenticatedClient,
    cluster: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    page_size: int | Unset = 50,
    ready: bool | Unset = UNSET,
) -> PaginatedNodeList:
    """Nodes.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["cluster"] = cluster

    params["cursor"] = cursor

    params["page_size"] = page_size

    params["ready"] = ready

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/nodes",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedNodeList.from_dict(response.json())

    return response_200
