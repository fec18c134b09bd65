from typing import Literal

ScriptJobSubmitRequestKind = Literal["script"]

SCRIPT_JOB_SUBMIT_REQUEST_KIND_VALUES: set[ScriptJobSubmitRequestKind] = {
    "script",
}


def check_script_job_submit_request_kind(value: str) -> ScriptJobSubmitRequestKind:
    if value in SCRIPT_JOB_SUBMIT_REQUEST_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {SCRIPT_JOB_SUBMIT_REQUEST_KIND_VALUES!r}"
    )
