from typing import Any

from ...client import AuthenticatedClient
from ...models.artifact import Artifact
from ...models.code_archive_request import CodeArchiveRequest
from ...types import UNSET, Unset


def code_create(
    *,
    client: AuthenticatedClient,
    body: CodeArchiveRequest,
    idempotency_key: str | Unset = UNSET,
) -> Artifact:
    """Upload code for script jobs.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/code",
    }

    _kwargs["files"] = body.to_multipart()

    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_201 = Artifact.from_dict(response.json())

    return response_201
