from typing import Literal

OpEnum = Literal["<", "<=", "==", ">", ">="]

OP_ENUM_VALUES: set[OpEnum] = {
    "<",
    "<=",
    "==",
    ">",
    ">=",
}


def check_op_enum(value: str) -> OpEnum:
    if value in OP_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {OP_ENUM_VALUES!r}")
