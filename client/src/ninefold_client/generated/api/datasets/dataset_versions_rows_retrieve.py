from io import BytesIO
from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.dataset_versions_rows_retrieve_split import (
    DatasetVersionsRowsRetrieveSplit,
)
from ...types import UNSET, File, Unset


def dataset_versions_rows_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
    split: DatasetVersionsRowsRetrieveSplit | Unset = "train",
) -> File:
    """Rows of a split as JSON Lines.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    json_split: str | Unset = UNSET
    if not isinstance(split, Unset):
        json_split = split

    params["split"] = json_split

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/dataset-versions/{uid}/rows".format(
            uid=quote(str(uid), safe=""),
        ),
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = File(payload=BytesIO(response.content))

    return response_200
