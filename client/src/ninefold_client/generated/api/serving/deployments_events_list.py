from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.deployment_event import DeploymentEvent


def deployments_events_list(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> list[DeploymentEvent]:
    """State transitions of a deployment and its replicas, latest first.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/deployments/{uid}/events".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = []
    _response_200 = response.json()
    for response_200_item_data in _response_200:
        response_200_item = DeploymentEvent.from_dict(response_200_item_data)

        response_200.append(response_200_item)

    return response_200
