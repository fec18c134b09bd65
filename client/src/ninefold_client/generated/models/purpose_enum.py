from typing import Literal

PurposeEnum = Literal["fewer_fragments", "room_for", "whole_nodes"]

PURPOSE_ENUM_VALUES: set[PurposeEnum] = {
    "fewer_fragments",
    "room_for",
    "whole_nodes",
}


def check_purpose_enum(value: str) -> PurposeEnum:
    if value in PURPOSE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PURPOSE_ENUM_VALUES!r}")
