from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.alert_silence import AlertSilence
from ...models.patched_alert_silence_change_request import (
    PatchedAlertSilenceChangeRequest,
)
from ...types import UNSET, Unset


def alert_silences_partial_update(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: PatchedAlertSilenceChangeRequest | Unset = UNSET,
    dry_run: bool | Unset = False,
) -> AlertSilence:
    """Change a silence.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/api/v1/alert-silences/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
        "params": params,
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = AlertSilence.from_dict(response.json())

    return response_200
