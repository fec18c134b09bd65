from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.dataset import Dataset
from ...models.patched_dataset_change_request import PatchedDatasetChangeRequest
from ...types import UNSET, Unset


def datasets_partial_update(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: PatchedDatasetChangeRequest | Unset = UNSET,
) -> Dataset:
    """Change a dataset.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/api/v1/datasets/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = Dataset.from_dict(response.json())

    return response_200
