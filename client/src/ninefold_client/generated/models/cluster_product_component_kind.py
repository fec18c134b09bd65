from typing import Literal

ClusterProductComponentKind = Literal["cluster"]

CLUSTER_PRODUCT_COMPONENT_KIND_VALUES: set[ClusterProductComponentKind] = {
    "cluster",
}


def check_cluster_product_component_kind(value: str) -> ClusterProductComponentKind:
    if value in CLUSTER_PRODUCT_COMPONENT_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {CLUSTER_PRODUCT_COMPONENT_KIND_VALUES!r}"
    )
