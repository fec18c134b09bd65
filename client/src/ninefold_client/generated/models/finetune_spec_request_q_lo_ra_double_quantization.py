from typing import Literal

FinetuneSpecRequestQLoRADoubleQuantization = Literal["off", "on"]

FINETUNE_SPEC_REQUEST_Q_LO_RA_DOUBLE_QUANTIZATION_VALUES: set[
    FinetuneSpecRequestQLoRADoubleQuantization
] = {
    "off",
    "on",
}


def check_finetune_spec_request_q_lo_ra_double_quantization(
    value: str,
) -> FinetuneSpecRequestQLoRADoubleQuantization:
    if value in FINETUNE_SPEC_REQUEST_Q_LO_RA_DOUBLE_QUANTIZATION_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {FINETUNE_SPEC_REQUEST_Q_LO_RA_DOUBLE_QUANTIZATION_VALUES!r}"
    )
