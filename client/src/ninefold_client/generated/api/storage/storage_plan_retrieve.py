from typing import Any

from ...client import AuthenticatedClient
from ...models.retention_plan import RetentionPlan
from ...types import UNSET, Unset


def storage_plan_retrieve(
    *,
    client: AuthenticatedClient,
    team: str | Unset = UNSET,
) -> RetentionPlan:
    """Objects that the next retention run removes.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["team"] = team

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/storage/plan",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = RetentionPlan.from_dict(response.json())

    return response_200
