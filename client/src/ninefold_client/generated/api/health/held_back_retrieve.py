from typing import Any

from ...client import AuthenticatedClient
from ...models.suppressed_actions import SuppressedActions


def held_back_retrieve(
    *,
    client: AuthenticatedClient,
) -> SuppressedActions:
    """Isolations suppressed by the guard.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/held-back",
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = SuppressedActions.from_dict(response.json())

    return response_200
