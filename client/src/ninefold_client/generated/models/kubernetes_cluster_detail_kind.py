from typing import Literal

KubernetesClusterDetailKind = Literal["kubernetes"]

KUBERNETES_CLUSTER_DETAIL_KIND_VALUES: set[KubernetesClusterDetailKind] = {
    "kubernetes",
}


def check_kubernetes_cluster_detail_kind(value: str) -> KubernetesClusterDetailKind:
    if value in KUBERNETES_CLUSTER_DETAIL_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {KUBERNETES_CLUSTER_DETAIL_KIND_VALUES!r}"
    )
