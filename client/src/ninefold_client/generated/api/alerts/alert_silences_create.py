from typing import Any

from ...client import AuthenticatedClient
from ...models.alert_silence import AlertSilence
from ...models.alert_silence_create_request import AlertSilenceCreateRequest
from ...types import UNSET, Unset


def alert_silences_create(
    *,
    client: AuthenticatedClient,
    body: AlertSilenceCreateRequest,
    dry_run: bool | Unset = False,
    idempotency_key: str | Unset = UNSET,
) -> AlertSilence:
    """Create a silence.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/alert-silences",
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_201 = AlertSilence.from_dict(response.json())

    return response_201
