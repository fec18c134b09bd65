from typing import Literal

LocalClusterDetailKind = Literal["local"]

LOCAL_CLUSTER_DETAIL_KIND_VALUES: set[LocalClusterDetailKind] = {
    "local",
}


def check_local_cluster_detail_kind(value: str) -> LocalClusterDetailKind:
    if value in LOCAL_CLUSTER_DETAIL_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {LOCAL_CLUSTER_DETAIL_KIND_VALUES!r}"
    )
