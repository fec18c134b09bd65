from typing import Any

from ...client import AuthenticatedClient
from ...models.dataset_inspect_request_request import DatasetInspectRequestRequest
from ...models.dataset_inspection import DatasetInspection


def datasets_inspect_create(
    *,
    client: AuthenticatedClient,
    body: DatasetInspectRequestRequest,
) -> DatasetInspection:
    """Check a file without storing it.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/datasets/inspect",
    }

    _kwargs["files"] = body.to_multipart()

    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = DatasetInspection.from_dict(response.json())

    return response_200
