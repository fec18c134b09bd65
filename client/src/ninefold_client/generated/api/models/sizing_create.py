from typing import Any

from ...client import AuthenticatedClient
from ...models.sizing import Sizing
from ...models.sizing_request_request import SizingRequestRequest


def sizing_create(
    *,
    client: AuthenticatedClient,
    body: SizingRequestRequest,
) -> Sizing:
    """Estimate the memory of a model.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/sizing",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = Sizing.from_dict(response.json())

    return response_200
