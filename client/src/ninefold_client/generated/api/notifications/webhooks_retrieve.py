from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.webhook import Webhook


def webhooks_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> Webhook:
    """A webhook.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/webhooks/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = Webhook.from_dict(response.json())

    return response_200
