from typing import Literal

WeightDownloadStateEnum = Literal[
    "cancelled", "failed", "pending", "running", "stopping", "succeeded"
]

WEIGHT_DOWNLOAD_STATE_ENUM_VALUES: set[WeightDownloadStateEnum] = {
    "cancelled",
    "failed",
    "pending",
    "running",
    "stopping",
    "succeeded",
}


def check_weight_download_state_enum(value: str) -> WeightDownloadStateEnum:
    if value in WEIGHT_DOWNLOAD_STATE_ENUM_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {WEIGHT_DOWNLOAD_STATE_ENUM_VALUES!r}"
    )
