from typing import Literal

TeamRolesEnum = Literal["administrator", "engineer", "queue_admin", "viewer"]

TEAM_ROLES_ENUM_VALUES: set[TeamRolesEnum] = {
    "administrator",
    "engineer",
    "queue_admin",
    "viewer",
}


def check_team_roles_enum(value: str) -> TeamRolesEnum:
    if value in TEAM_ROLES_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TEAM_ROLES_ENUM_VALUES!r}")
