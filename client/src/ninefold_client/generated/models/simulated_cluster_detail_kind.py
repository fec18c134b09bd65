from typing import Literal

SimulatedClusterDetailKind = Literal["simulated"]

SIMULATED_CLUSTER_DETAIL_KIND_VALUES: set[SimulatedClusterDetailKind] = {
    "simulated",
}


def check_simulated_cluster_detail_kind(value: str) -> SimulatedClusterDetailKind:
    if value in SIMULATED_CLUSTER_DETAIL_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {SIMULATED_CLUSTER_DETAIL_KIND_VALUES!r}"
    )
