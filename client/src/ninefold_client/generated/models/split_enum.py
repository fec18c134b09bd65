from typing import Literal

SplitEnum = Literal["test", "train", "validation"]

SPLIT_ENUM_VALUES: set[SplitEnum] = {
    "test",
    "train",
    "validation",
}


def check_split_enum(value: str) -> SplitEnum:
    if value in SPLIT_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SPLIT_ENUM_VALUES!r}")
