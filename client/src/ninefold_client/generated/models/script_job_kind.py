from typing import Literal

ScriptJobKind = Literal["script"]

SCRIPT_JOB_KIND_VALUES: set[ScriptJobKind] = {
    "script",
}


def check_script_job_kind(value: str) -> ScriptJobKind:
    if value in SCRIPT_JOB_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SCRIPT_JOB_KIND_VALUES!r}")
