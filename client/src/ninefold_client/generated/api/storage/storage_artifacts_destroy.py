from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.stored_artifact import StoredArtifact


def storage_artifacts_destroy(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> StoredArtifact:
    """Delete an object.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "delete",
        "url": "/api/v1/storage/artifacts/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = StoredArtifact.from_dict(response.json())

    return response_200
