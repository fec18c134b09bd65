from typing import Literal

ChipKind = Literal["cpu", "gpu", "npu"]

CHIP_KIND_VALUES: set[ChipKind] = {
    "cpu",
    "gpu",
    "npu",
}


def check_chip_kind(value: str) -> ChipKind:
    if value in CHIP_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CHIP_KIND_VALUES!r}")
