from typing import Literal

RetryOnEnum = Literal["environment_error", "hardware_error", "killed", "user_error"]

RETRY_ON_ENUM_VALUES: set[RetryOnEnum] = {
    "environment_error",
    "hardware_error",
    "killed",
    "user_error",
}


def check_retry_on_enum(value: str) -> RetryOnEnum:
    if value in RETRY_ON_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {RETRY_ON_ENUM_VALUES!r}")
