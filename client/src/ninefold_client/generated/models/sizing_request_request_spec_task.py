from typing import Literal

SizingRequestRequestSpecTask = Literal["serve", "train"]

SIZING_REQUEST_REQUEST_SPEC_TASK_VALUES: set[SizingRequestRequestSpecTask] = {
    "serve",
    "train",
}


def check_sizing_request_request_spec_task(value: str) -> SizingRequestRequestSpecTask:
    if value in SIZING_REQUEST_REQUEST_SPEC_TASK_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {SIZING_REQUEST_REQUEST_SPEC_TASK_VALUES!r}"
    )
