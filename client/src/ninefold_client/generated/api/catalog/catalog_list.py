from typing import Any

from ...client import AuthenticatedClient
from ...models.catalog_entry import CatalogEntry
from ...models.catalog_list_modality_item import (
    CatalogListModalityItem,
)
from ...models.catalog_list_quantize_item import (
    CatalogListQuantizeItem,
)
from ...models.catalog_list_serve_item import (
    CatalogListServeItem,
)
from ...models.catalog_list_size_item import (
    CatalogListSizeItem,
)
from ...models.catalog_list_train_item import (
    CatalogListTrainItem,
)
from ...types import UNSET, Unset


def catalog_list(
    *,
    client: AuthenticatedClient,
    family: str | Unset = UNSET,
    licence: str | Unset = UNSET,
    modality: list[CatalogListModalityItem] | Unset = UNSET,
    q: str | Unset = UNSET,
    quantize: list[CatalogListQuantizeItem] | Unset = UNSET,
    serve: list[CatalogListServeItem] | Unset = UNSET,
    size: list[CatalogListSizeItem] | Unset = UNSET,
    task: str | Unset = UNSET,
    train: list[CatalogListTrainItem] | Unset = UNSET,
) -> list[CatalogEntry]:
    """Model catalog.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["family"] = family

    params["licence"] = licence

    json_modality: list[str] | Unset = UNSET
    if not isinstance(modality, Unset):
        json_modality = []
        for modality_item_data in modality:
            modality_item: str = modality_item_data
            json_modality.append(modality_item)

    params["modality"] = json_modality

    params["q"] = q

    json_quantize: list[str] | Unset = UNSET
    if not isinstance(quantize, Unset):
        json_quantize = []
        for quantize_item_data in quantize:
            quantize_item: str = quantize_item_data
            json_quantize.append(quantize_item)

    params["quantize"] = json_quantize

    json_serve: list[str] | Unset = UNSET
    if not isinstance(serve, Unset):
        json_serve = []
        for serve_item_data in serve:
            serve_item: str = serve_item_data
            json_serve.append(serve_item)

    params["serve"] = json_serve

    json_size: list[str] | Unset = UNSET
    if not isinstance(size, Unset):
        json_size = []
        for size_item_data in size:
            size_item: str = size_item_data
            json_size.append(size_item)

    params["size"] = json_size

    params["task"] = task

    json_train: list[str] | Unset = UNSET
    if not isinstance(train, Unset):
        json_train = []
        for train_item_data in train:
            train_item: str = train_item_data
            json_train.append(train_item)

    params["train"] = json_train

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/catalog",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = []
    _response_200 = response.json()
    for response_200_item_data in _response_200:
        response_200_item = CatalogEntry.from_dict(response_200_item_data)

        response_200.append(response_200_item)

    return response_200
