from typing import Literal

ScriptJobDetailKind = Literal["script"]

SCRIPT_JOB_DETAIL_KIND_VALUES: set[ScriptJobDetailKind] = {
    "script",
}


def check_script_job_detail_kind(value: str) -> ScriptJobDetailKind:
    if value in SCRIPT_JOB_DETAIL_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {SCRIPT_JOB_DETAIL_KIND_VALUES!r}"
    )
