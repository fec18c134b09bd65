from typing import Literal

RowWarningKindEnum = Literal["leaked", "long", "media", "repeated"]

ROW_WARNING_KIND_ENUM_VALUES: set[RowWarningKindEnum] = {
    "leaked",
    "long",
    "media",
    "repeated",
}


def check_row_warning_kind_enum(value: str) -> RowWarningKindEnum:
    if value in ROW_WARNING_KIND_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ROW_WARNING_KIND_ENUM_VALUES!r}")
