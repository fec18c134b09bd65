from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.stored_artifact import StoredArtifact
from ...types import UNSET, Unset


def storage_artifacts_destroy(
    uid: str,
    *,
    client: AuthenticatedClient,
    dry_run: bool | Unset = False,
) -> StoredArtifact:
    """Delete an object.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "delete",
        "url": "/api/v1/storage/artifacts/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = StoredArtifact.from_dict(response.json())

    return response_200
