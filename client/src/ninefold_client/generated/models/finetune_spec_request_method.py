from typing import Literal

FinetuneSpecRequestMethod = Literal["full", "lora", "qlora"]

FINETUNE_SPEC_REQUEST_METHOD_VALUES: set[FinetuneSpecRequestMethod] = {
    "full",
    "lora",
    "qlora",
}


def check_finetune_spec_request_method(value: str) -> FinetuneSpecRequestMethod:
    if value in FINETUNE_SPEC_REQUEST_METHOD_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {FINETUNE_SPEC_REQUEST_METHOD_VALUES!r}"
    )
