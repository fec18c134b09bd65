from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.api_key import ApiKey


def keys_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> ApiKey:
    """A gateway key.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/keys/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = ApiKey.from_dict(response.json())

    return response_200
