from typing import Literal

VolcanoClusterCreateRequestKind = Literal["volcano"]

VOLCANO_CLUSTER_CREATE_REQUEST_KIND_VALUES: set[VolcanoClusterCreateRequestKind] = {
    "volcano",
}


def check_volcano_cluster_create_request_kind(value: str) -> VolcanoClusterCreateRequestKind:
    if value in VOLCANO_CLUSTER_CREATE_REQUEST_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {VOLCANO_CLUSTER_CREATE_REQUEST_KIND_VALUES!r}"
    )
