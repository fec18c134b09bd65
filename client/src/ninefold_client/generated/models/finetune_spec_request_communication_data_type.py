from typing import Literal

FinetuneSpecRequestCommunicationDataType = Literal["auto", "bfloat16", "float16", "float32"]

FINETUNE_SPEC_REQUEST_COMMUNICATION_DATA_TYPE_VALUES: set[
    FinetuneSpecRequestCommunicationDataType
] = {
    "auto",
    "bfloat16",
    "float16",
    "float32",
}


def check_finetune_spec_request_communication_data_type(
    value: str,
) -> FinetuneSpecRequestCommunicationDataType:
    if value in FINETUNE_SPEC_REQUEST_COMMUNICATION_DATA_TYPE_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {FINETUNE_SPEC_REQUEST_COMMUNICATION_DATA_TYPE_VALUES!r}"
    )
