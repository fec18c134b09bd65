from typing import Literal

TeamStorageLevelEnum = Literal["full", "near", "roomy", "unlimited"]

TEAM_STORAGE_LEVEL_ENUM_VALUES: set[TeamStorageLevelEnum] = {
    "full",
    "near",
    "roomy",
    "unlimited",
}


def check_team_storage_level_enum(value: str) -> TeamStorageLevelEnum:
    if value in TEAM_STORAGE_LEVEL_ENUM_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {TEAM_STORAGE_LEVEL_ENUM_VALUES!r}"
    )
