from typing import Literal

ReplicasLogRetrieveFormat = Literal["json", "txt"]

REPLICAS_LOG_RETRIEVE_FORMAT_VALUES: set[ReplicasLogRetrieveFormat] = {
    "json",
    "txt",
}


def check_replicas_log_retrieve_format(value: str) -> ReplicasLogRetrieveFormat:
    if value in REPLICAS_LOG_RETRIEVE_FORMAT_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {REPLICAS_LOG_RETRIEVE_FORMAT_VALUES!r}"
    )
