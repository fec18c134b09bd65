from typing import Literal

GatewayProductComponentKind = Literal["gateway"]

GATEWAY_PRODUCT_COMPONENT_KIND_VALUES: set[GatewayProductComponentKind] = {
    "gateway",
}


def check_gateway_product_component_kind(value: str) -> GatewayProductComponentKind:
    if value in GATEWAY_PRODUCT_COMPONENT_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {GATEWAY_PRODUCT_COMPONENT_KIND_VALUES!r}"
    )
