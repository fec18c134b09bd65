from typing import Literal

AgentsProductComponentKind = Literal["agents"]

AGENTS_PRODUCT_COMPONENT_KIND_VALUES: set[AgentsProductComponentKind] = {
    "agents",
}


def check_agents_product_component_kind(value: str) -> AgentsProductComponentKind:
    if value in AGENTS_PRODUCT_COMPONENT_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {AGENTS_PRODUCT_COMPONENT_KIND_VALUES!r}"
    )
