from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.maintenance_rollout import MaintenanceRollout


def rollouts_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> MaintenanceRollout:
    """Get a maintenance rollout with its nodes.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/rollouts/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = MaintenanceRollout.from_dict(response.json())

    return response_200
