from typing import Literal

OutboxProductComponentKind = Literal["outbox"]

OUTBOX_PRODUCT_COMPONENT_KIND_VALUES: set[OutboxProductComponentKind] = {
    "outbox",
}


def check_outbox_product_component_kind(value: str) -> OutboxProductComponentKind:
    if value in OUTBOX_PRODUCT_COMPONENT_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {OUTBOX_PRODUCT_COMPONENT_KIND_VALUES!r}"
    )
