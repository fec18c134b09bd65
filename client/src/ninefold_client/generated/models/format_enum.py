from typing import Literal

FormatEnum = Literal["csv", "json", "jsonl"]

FORMAT_ENUM_VALUES: set[FormatEnum] = {
    "csv",
    "json",
    "jsonl",
}


def check_format_enum(value: str) -> FormatEnum:
    if value in FORMAT_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {FORMAT_ENUM_VALUES!r}")
