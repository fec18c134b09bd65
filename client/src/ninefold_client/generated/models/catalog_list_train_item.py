from typing import Literal

CatalogListTrainItem = Literal[
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

CATALOG_LIST_TRAIN_ITEM_VALUES: set[CatalogListTrainItem] = {
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


def check_catalog_list_train_item(value: str) -> CatalogListTrainItem:
    if value in CATALOG_LIST_TRAIN_ITEM_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {CATALOG_LIST_TRAIN_ITEM_VALUES!r}"
    )
