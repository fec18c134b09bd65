from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.model_line import ModelLine


def models_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> ModelLine:
    """A model.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/models/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = ModelLine.from_dict(response.json())

    return response_200
