from io import BytesIO
from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...types import File


def artifacts_files_retrieve(
    uid: str,
    path: str,
    *,
    client: AuthenticatedClient,
) -> File:
    """One file of an artifact.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/artifacts/{uid}/files/{path}".format(
            uid=quote(str(uid), safe=""),
            path=quote(str(path), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = File(payload=BytesIO(response.content))

    return response_200
