from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.alert_silence import AlertSilence


def alert_silences_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> AlertSilence:
    """A silence.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/alert-silences/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = AlertSilence.from_dict(response.json())

    return response_200
