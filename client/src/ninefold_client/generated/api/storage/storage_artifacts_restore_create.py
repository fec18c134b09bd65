from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.stored_artifact import StoredArtifact
from ...types import UNSET, Unset


def storage_artifacts_restore_create(
    uid: str,
    *,
    client: AuthenticatedClient,
    idempotency_key: str | Unset = UNSET,
) -> StoredArtifact:
    """Restore a deleted object.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/storage/artifacts/{uid}/restore".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = StoredArtifact.from_dict(response.json())

    return response_200
