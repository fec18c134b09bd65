from typing import Literal

SchemaEnum = Literal["chat", "instruction", "preference", "sharegpt", "text"]

SCHEMA_ENUM_VALUES: set[SchemaEnum] = {
    "chat",
    "instruction",
    "preference",
    "sharegpt",
    "text",
}


def check_schema_enum(value: str) -> SchemaEnum:
    if value in SCHEMA_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SCHEMA_ENUM_VALUES!r}")
