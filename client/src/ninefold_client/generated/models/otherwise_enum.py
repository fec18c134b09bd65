from typing import Literal

OtherwiseEnum = Literal["skip", "stop"]

OTHERWISE_ENUM_VALUES: set[OtherwiseEnum] = {
    "skip",
    "stop",
}


def check_otherwise_enum(value: str) -> OtherwiseEnum:
    if value in OTHERWISE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {OTHERWISE_ENUM_VALUES!r}")
