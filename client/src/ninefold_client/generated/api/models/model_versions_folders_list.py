from typing import Any

from ...client import AuthenticatedClient
from ...models.import_folder import ImportFolder


def model_versions_folders_list(
    *,
    client: AuthenticatedClient,
) -> list[ImportFolder]:
    """Folders that can be registered.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/model-versions/folders",
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = []
    _response_200 = response.json()
    for response_200_item_data in _response_200:
        response_200_item = ImportFolder.from_dict(response_200_item_data)

        response_200.append(response_200_item)

    return response_200
