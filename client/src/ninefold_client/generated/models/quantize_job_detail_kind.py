from typing import Literal

QuantizeJobDetailKind = Literal["quantize"]

QUANTIZE_JOB_DETAIL_KIND_VALUES: set[QuantizeJobDetailKind] = {
    "quantize",
}


def check_quantize_job_detail_kind(value: str) -> QuantizeJobDetailKind:
    if value in QUANTIZE_JOB_DETAIL_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {QUANTIZE_JOB_DETAIL_KIND_VALUES!r}"
    )
