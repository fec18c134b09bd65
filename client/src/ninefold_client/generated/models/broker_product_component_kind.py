from typing import Literal

BrokerProductComponentKind = Literal["broker"]

BROKER_PRODUCT_COMPONENT_KIND_VALUES: set[BrokerProductComponentKind] = {
    "broker",
}


def check_broker_product_component_kind(value: str) -> BrokerProductComponentKind:
    if value in BROKER_PRODUCT_COMPONENT_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {BROKER_PRODUCT_COMPONENT_KIND_VALUES!r}"
    )
