from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.node_token import NodeToken


def node_tokens_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> NodeToken:
    """Get a node token.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/node-tokens/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = NodeToken.from_dict(response.json())

    return response_200
