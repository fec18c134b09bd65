from typing import Literal

CatalogListSizeItem = Literal[
    "10b-40b", "1b-4b", "40b-100b", "4b-10b", "over-100b", "under-1b", "unknown"
]

CATALOG_LIST_SIZE_ITEM_VALUES: set[CatalogListSizeItem] = {
    "10b-40b",
    "1b-4b",
    "40b-100b",
    "4b-10b",
    "over-100b",
    "under-1b",
    "unknown",
}


def check_catalog_list_size_item(value: str) -> CatalogListSizeItem:
    if value in CATALOG_LIST_SIZE_ITEM_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {CATALOG_LIST_SIZE_ITEM_VALUES!r}"
    )
