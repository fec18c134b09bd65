from typing import Literal

WatcherProductComponentKind = Literal["watcher"]

WATCHER_PRODUCT_COMPONENT_KIND_VALUES: set[WatcherProductComponentKind] = {
    "watcher",
}


def check_watcher_product_component_kind(value: str) -> WatcherProductComponentKind:
    if value in WATCHER_PRODUCT_COMPONENT_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {WATCHER_PRODUCT_COMPONENT_KIND_VALUES!r}"
    )
