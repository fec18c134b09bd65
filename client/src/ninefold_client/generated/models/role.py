from typing import Literal

Role = Literal["administrator", "engineer", "queue_admin", "viewer"]

ROLE_VALUES: set[Role] = {
    "administrator",
    "engineer",
    "queue_admin",
    "viewer",
}


def check_role(value: str) -> Role:
    if value in ROLE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ROLE_VALUES!r}")
