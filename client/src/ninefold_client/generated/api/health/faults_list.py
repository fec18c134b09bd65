from typing import Any

from ...client import AuthenticatedClient
from ...models.faults_list_level import FaultsListLevel
from ...models.faults_list_origin import FaultsListOrigin
from ...models.paginated_fault_list import PaginatedFaultList
from ...types import UNSET, Unset


def faults_list(
    *,
    client: AuthenticatedClient,
    acknowledged: bool | Unset = UNSET,
    card: str | Unset = UNSET,
    cluster: str | Unset = UNSET,
    code: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    level: FaultsListLevel | Unset = UNSET,
    node: str | Unset = UNSET,
    origin: FaultsListOrigin | Unset = UNSET,
    page_size: int | Unset = 50,
    standing: bool | Unset = UNSET,
) -> PaginatedFaultList:
    """Faults.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["acknowledged"] = acknowledged

    params["card"] = card

    params["cluster"] = cluster

    params["code"] = code

    params["cursor"] = cursor

    json_level: int | Unset = UNSET
    if not isinstance(level, Unset):
        json_level = level

    params["level"] = json_level

    params["node"] = node

    json_origin: str | Unset = UNSET
    if not isinstance(origin, Unset):
        json_origin = origin

    params["origin"] = json_origin

    params["page_size"] = page_size

    params["standing"] = standing

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/faults",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedFaultList.from_dict(response.json())

    return response_200
