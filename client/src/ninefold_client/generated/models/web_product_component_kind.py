from typing import Literal

WebProductComponentKind = Literal["web"]

WEB_PRODUCT_COMPONENT_KIND_VALUES: set[WebProductComponentKind] = {
    "web",
}


def check_web_product_component_kind(value: str) -> WebProductComponentKind:
    if value in WEB_PRODUCT_COMPONENT_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {WEB_PRODUCT_COMPONENT_KIND_VALUES!r}"
    )
