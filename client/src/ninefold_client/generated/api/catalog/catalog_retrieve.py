from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.catalog_detail import CatalogDetail


def catalog_retrieve(
    key: str,
    *,
    client: AuthenticatedClient,
) -> CatalogDetail:
    """A catalog model.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/catalog/{key}".format(
            key=quote(str(key), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = CatalogDetail.from_dict(response.json())

    return response_200
