from typing import Literal

BindingEnum = Literal["card", "node"]

BINDING_ENUM_VALUES: set[BindingEnum] = {
    "card",
    "node",
}


def check_binding_enum(value: str) -> BindingEnum:
    if value in BINDING_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {BINDING_ENUM_VALUES!r}")
