from typing import Literal

VolcanoClusterDetailKind = Literal["volcano"]

VOLCANO_CLUSTER_DETAIL_KIND_VALUES: set[VolcanoClusterDetailKind] = {
    "volcano",
}


def check_volcano_cluster_detail_kind(value: str) -> VolcanoClusterDetailKind:
    if value in VOLCANO_CLUSTER_DETAIL_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {VOLCANO_CLUSTER_DETAIL_KIND_VALUES!r}"
    )
