from typing import Literal

SizingTaskEnum = Literal["serve", "train"]

SIZING_TASK_ENUM_VALUES: set[SizingTaskEnum] = {
    "serve",
    "train",
}


def check_sizing_task_enum(value: str) -> SizingTaskEnum:
    if value in SIZING_TASK_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SIZING_TASK_ENUM_VALUES!r}")
