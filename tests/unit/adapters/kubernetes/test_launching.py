"""What keeps a Launch from being made, before the first object of it stands."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.adapters.clusters.kubernetes.cluster_profile import ClusterProfile
from controlplane.adapters.clusters.kubernetes.launching import PodLauncher
from controlplane.ports.clusters import LaunchRefused
from tests.unit.adapters.kubernetes.api_objects import H800, OURS, node
from tests.unit.adapters.kubernetes.fake_api import StoringApi, listing
from tests.unit.adapters.volcano.plans import planned, trainer

GPU = "nvidia.com/gpu"


def cluster() -> StoringApi:
    path = "/api/v1/namespaces/ninefold-vision"
    nodes = {f"/api/v1/nodes/{name}": node(name, {GPU: 8}, labels=H800) for name in ("n0", "n1")}
    kinds = ("pods", "secrets", "services", "configmaps")
    return StoringApi(
        {
            "/api/v1/namespaces": listing(),
            **nodes,
            **{f"{path}/{kind}": listing() for kind in kinds},
        }
    )


@pytest.mark.parametrize(
    ("nodes", "work", "refused"),
    [(2, None, True), (2, {"claim": "work"}, False), (1, None, False)],
)
def test_replicas_that_share_files_need_a_folder_for_all_of_their_nodes(
    nodes: int, work: dict[str, str] | None, refused: bool
) -> None:
    api, profile = cluster(), ClusterProfile.read({} if work is None else {"work": work})
    launcher = PodLauncher(api, profile=profile, installation=OURS)
    launch = replace(planned(trainer(nodes=nodes)).launch, shares_checkpoints=True)
    before = set(api.stored)
    if refused:
        with pytest.raises(
            LaunchRefused, match="set the cluster option work, or run the job on one"
        ):
            launcher.launch(launch)
        assert set(api.stored) == before
    else:
        launcher.launch(launch)
        assert sum("/pods/" in path for path in api.stored) == nodes
