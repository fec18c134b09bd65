from typing import Literal

QueueDifferenceKindEnum = Literal["changed", "created", "retired"]

QUEUE_DIFFERENCE_KIND_ENUM_VALUES: set[QueueDifferenceKindEnum] = {
    "changed",
    "created",
    "retired",
}


def check_queue_difference_kind_enum(value: str) -> QueueDifferenceKindEnum:
    if value in QUEUE_DIFFERENCE_KIND_ENUM_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {QUEUE_DIFFERENCE_KIND_ENUM_VALUES!r}"
    )
