from typing import Literal

CatalogListQuantizeItem = Literal[
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

CATALOG_LIST_QUANTIZE_ITEM_VALUES: set[CatalogListQuantizeItem] = {
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


def check_catalog_list_quantize_item(value: str) -> CatalogListQuantizeItem:
    if value in CATALOG_LIST_QUANTIZE_ITEM_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {CATALOG_LIST_QUANTIZE_ITEM_VALUES!r}"
    )
