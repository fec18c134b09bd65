from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.api_key import ApiKey
from ...models.patched_api_key_change_request import PatchedApiKeyChangeRequest
from ...types import UNSET, Unset


def keys_partial_update(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: PatchedApiKeyChangeRequest | Unset = UNSET,
    dry_run: bool | Unset = False,
) -> ApiKey:
    """Change a gateway key.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/api/v1/keys/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
        "params": params,
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = ApiKey.from_dict(response.json())

    return response_200
