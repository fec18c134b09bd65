from typing import Literal

DatabaseProductComponentKind = Literal["database"]

DATABASE_PRODUCT_COMPONENT_KIND_VALUES: set[DatabaseProductComponentKind] = {
    "database",
}


def check_database_product_component_kind(value: str) -> DatabaseProductComponentKind:
    if value in DATABASE_PRODUCT_COMPONENT_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {DATABASE_PRODUCT_COMPONENT_KIND_VALUES!r}"
    )
