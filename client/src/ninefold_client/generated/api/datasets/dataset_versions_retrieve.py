from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.dataset_version_detail import DatasetVersionDetail


def dataset_versions_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> DatasetVersionDetail:
    """A dataset version with its first rows.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/dataset-versions/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = DatasetVersionDetail.from_dict(response.json())

    return response_200
