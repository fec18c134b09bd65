from typing import Literal

PartEnum = Literal["arguments", "cards", "environment", "image"]

PART_ENUM_VALUES: set[PartEnum] = {
    "arguments",
    "cards",
    "environment",
    "image",
}


def check_part_enum(value: str) -> PartEnum:
    if value in PART_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PART_ENUM_VALUES!r}")
