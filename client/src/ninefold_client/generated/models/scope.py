from typing import Literal

Scope = Literal["admin", "all", "jobs", "models", "read", "serving"]

SCOPE_VALUES: set[Scope] = {
    "admin",
    "all",
    "jobs",
    "models",
    "read",
    "serving",
}


def check_scope(value: str) -> Scope:
    if value in SCOPE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SCOPE_VALUES!r}")
