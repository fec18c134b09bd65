from typing import Literal

HubEnum = Literal["huggingface", "modelscope"]

HUB_ENUM_VALUES: set[HubEnum] = {
    "huggingface",
    "modelscope",
}


def check_hub_enum(value: str) -> HubEnum:
    if value in HUB_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {HUB_ENUM_VALUES!r}")
