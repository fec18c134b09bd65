from typing import Literal

FinetuneSpecRequestFusedOperatorsType0Item = Literal[
    "adamw",
    "cross_entropy",
    "flash_attention",
    "grouped_matmul",
    "rms_norm",
    "rotary_embedding",
    "swiglu",
]

FINETUNE_SPEC_REQUEST_FUSED_OPERATORS_TYPE_0_ITEM_VALUES: set[
    FinetuneSpecRequestFusedOperatorsType0Item
] = {
    "adamw",
    "cross_entropy",
    "flash_attention",
    "grouped_matmul",
    "rms_norm",
    "rotary_embedding",
    "swiglu",
}


def check_finetune_spec_request_fused_operators_type_0_item(
    value: str,
) -> FinetuneSpecRequestFusedOperatorsType0Item:
    if value in FINETUNE_SPEC_REQUEST_FUSED_OPERATORS_TYPE_0_ITEM_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {FINETUNE_SPEC_REQUEST_FUSED_OPERATORS_TYPE_0_ITEM_VALUES!r}"
    )
