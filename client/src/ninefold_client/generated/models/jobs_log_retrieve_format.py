from typing import Literal

JobsLogRetrieveFormat = Literal["json", "txt"]

JOBS_LOG_RETRIEVE_FORMAT_VALUES: set[JobsLogRetrieveFormat] = {
    "json",
    "txt",
}


def check_jobs_log_retrieve_format(value: str) -> JobsLogRetrieveFormat:
    if value in JOBS_LOG_RETRIEVE_FORMAT_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {JOBS_LOG_RETRIEVE_FORMAT_VALUES!r}"
    )
