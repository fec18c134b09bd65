from typing import Literal

UseEnum = Literal["broken", "fragment", "free", "held", "no_new_work", "reserved"]

USE_ENUM_VALUES: set[UseEnum] = {
    "broken",
    "fragment",
    "free",
    "held",
    "no_new_work",
    "reserved",
}


def check_use_enum(value: str) -> UseEnum:
    if value in USE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {USE_ENUM_VALUES!r}")
