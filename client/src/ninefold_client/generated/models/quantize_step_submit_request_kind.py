from typing import Literal

QuantizeStepSubmitRequestKind = Literal["quantize"]

QUANTIZE_STEP_SUBMIT_REQUEST_KIND_VALUES: set[QuantizeStepSubmitRequestKind] = {
    "quantize",
}


def check_quantize_step_submit_request_kind(value: str) -> QuantizeStepSubmitRequestKind:
    if value in QUANTIZE_STEP_SUBMIT_REQUEST_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {QUANTIZE_STEP_SUBMIT_REQUEST_KIND_VALUES!r}"
    )
