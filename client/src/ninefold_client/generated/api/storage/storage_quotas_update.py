from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.storage_quota_request import StorageQuotaRequest
from ...models.team_storage import TeamStorage
from ...types import UNSET, Unset


def storage_quotas_update(
    team: str,
    *,
    client: AuthenticatedClient,
    body: StorageQuotaRequest,
    dry_run: bool | Unset = False,
) -> TeamStorage:
    """Set the quota of a team.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/api/v1/storage/quotas/{team}".format(
            team=quote(str(team), safe=""),
        ),
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = TeamStorage.from_dict(response.json())

    return response_200
