from typing import Literal

QuantizeJobKind = Literal["quantize"]

QUANTIZE_JOB_KIND_VALUES: set[QuantizeJobKind] = {
    "quantize",
}


def check_quantize_job_kind(value: str) -> QuantizeJobKind:
    if value in QUANTIZE_JOB_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {QUANTIZE_JOB_KIND_VALUES!r}")
