from typing import Literal

BeatProductComponentKind = Literal["beat"]

BEAT_PRODUCT_COMPONENT_KIND_VALUES: set[BeatProductComponentKind] = {
    "beat",
}


def check_beat_product_component_kind(value: str) -> BeatProductComponentKind:
    if value in BEAT_PRODUCT_COMPONENT_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {BEAT_PRODUCT_COMPONENT_KIND_VALUES!r}"
    )
