from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.model_version_detail import ModelVersionDetail


def model_versions_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> ModelVersionDetail:
    """A model version.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/model-versions/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = ModelVersionDetail.from_dict(response.json())

    return response_200
