from typing import Literal

KubernetesClusterCreateRequestKind = Literal["kubernetes"]

KUBERNETES_CLUSTER_CREATE_REQUEST_KIND_VALUES: set[KubernetesClusterCreateRequestKind] = {
    "kubernetes",
}


def check_kubernetes_cluster_create_request_kind(value: str) -> KubernetesClusterCreateRequestKind:
    if value in KUBERNETES_CLUSTER_CREATE_REQUEST_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {KUBERNETES_CLUSTER_CREATE_REQUEST_KIND_VALUES!r}"
    )
