from typing import Literal

QuantizeJobSubmitRequestKind = Literal["quantize"]

QUANTIZE_JOB_SUBMIT_REQUEST_KIND_VALUES: set[QuantizeJobSubmitRequestKind] = {
    "quantize",
}


def check_quantize_job_submit_request_kind(value: str) -> QuantizeJobSubmitRequestKind:
    if value in QUANTIZE_JOB_SUBMIT_REQUEST_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {QUANTIZE_JOB_SUBMIT_REQUEST_KIND_VALUES!r}"
    )
