from typing import Literal

ReceiverKind = Literal["dingtalk", "email", "feishu", "slack", "webhook"]

RECEIVER_KIND_VALUES: set[ReceiverKind] = {
    "dingtalk",
    "email",
    "feishu",
    "slack",
    "webhook",
}


def check_receiver_kind(value: str) -> ReceiverKind:
    if value in RECEIVER_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {RECEIVER_KIND_VALUES!r}")
