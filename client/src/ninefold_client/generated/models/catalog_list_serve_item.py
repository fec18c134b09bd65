from typing import Literal

CatalogListServeItem = Literal[
    "amd",
    "ascend",
    "biren",
    "cambricon",
    "cpu",
    "enflame",
    "gaudi",
    "hygon",
    "iluvatar",
    "intel",
    "kunlunxin",
    "metax",
    "mthreads",
    "nvidia",
    "thead",
]

CATALOG_LIST_SERVE_ITEM_VALUES: set[CatalogListServeItem] = {
    "amd",
    "ascend",
    "biren",
    "cambricon",
    "cpu",
    "enflame",
    "gaudi",
    "hygon",
    "iluvatar",
    "intel",
    "kunlunxin",
    "metax",
    "mthreads",
    "nvidia",
    "thead",
}


def check_catalog_list_serve_item(value: str) -> CatalogListServeItem:
    if value in CATALOG_LIST_SERVE_ITEM_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {CATALOG_LIST_SERVE_ITEM_VALUES!r}"
    )
