from typing import Literal

FlagsEnum = Literal["parsed", "run", "unverified"]

FLAGS_ENUM_VALUES: set[FlagsEnum] = {
    "parsed",
    "run",
    "unverified",
}


def check_flags_enum(value: str) -> FlagsEnum:
    if value in FLAGS_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {FLAGS_ENUM_VALUES!r}")
