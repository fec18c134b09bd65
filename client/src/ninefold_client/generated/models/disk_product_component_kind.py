from typing import Literal

DiskProductComponentKind = Literal["disk"]

DISK_PRODUCT_COMPONENT_KIND_VALUES: set[DiskProductComponentKind] = {
    "disk",
}


def check_disk_product_component_kind(value: str) -> DiskProductComponentKind:
    if value in DISK_PRODUCT_COMPONENT_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {DISK_PRODUCT_COMPONENT_KIND_VALUES!r}"
    )
