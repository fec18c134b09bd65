"""What keeps a Launch from being made, before the first object of it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
import yaml

from apps.accounts.models import Team
from apps.fleet.models import Node
from apps.models.models import Artifact, ModelVersion
from apps.serving.models import WeightDownload
from apps.serving.services.weight_downloads import weight_download_launch
from controlplane.adapters.clusters.kubernetes.cluster import KubernetesCluster
from controlplane.adapters.clusters.kubernetes.cluster_profile import ClusterProfile
from controlplane.adapters.clusters.kubernetes.launching import PodLauncher
from controlplane.adapters.clusters.volcano.cluster import VolcanoCluster
from controlplane.ports.artifacts import BlobDownload
from controlplane.ports.clusters import LaunchRefused, ObservedReplica
from controlplane.ports.launches import Launch
from tests.unit.adapters.kubernetes.api_objects import H800, OURS, node
from tests.unit.adapters.kubernetes.fake_api import StoringApi, listing
from tests.unit.adapters.kubernetes.test_kubeconfig import config
from tests.unit.adapters.volcano.plans import planned, trainer
from tests.unit.kubernetes_schemas import validate

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


DIGEST = f"sha256:{'ab' * 32}"
CACHE: dict[str, Any] = {
    "cache": {"host_path": "/var/cache/ninefold"},
    "cache_size": 7 << 30,
    "image": "py:3",
}


def weights_launch() -> Launch:
    """As the service renders it for a node with GPUs, with a presigned URL."""
    files = [{"path": "model.safetensors", "digest": DIGEST, "size": 70}]
    row = WeightDownload(
        uid="c0ffee",
        team=Team(slug="vision"),
        node=Node(name="n0"),
        model_version=ModelVersion(artifact=Artifact(files=files)),
    )
    url = "https://s3.example/ab?X-Amz-Signature=very-secret"
    return replace(weight_download_launch(row), downloads={DIGEST: BlobDownload(url=url, size=70)})


#: On Volcano too: it has no queue, no Job and no PodGroup there.
KINDS = pytest.mark.parametrize("kind", [KubernetesCluster, VolcanoCluster])


def caching(kind: type[KubernetesCluster], api: StoringApi) -> KubernetesCluster:
    adapter = kind(installation=OURS, kubeconfig=yaml.safe_dump(config()), **CACHE)
    adapter.api = api
    return adapter


@KINDS
def test_a_weight_download_is_a_pod_without_cards_on_its_node(
    kind: type[KubernetesCluster],
) -> None:
    api = cluster()
    caching(kind, api).launch(weights_launch())
    assert not [path for path in api.stored if "volcano" in path]
    (manifest,) = (thing for path, thing in api.stored.items() if "/pods/" in path)
    validate({"apiVersion": "v1", "kind": "Pod", **manifest})
    spec = manifest["spec"]
    assert "schedulerName" not in spec
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert terms["nodeSelectorTerms"][0]["matchFields"][0]["values"] == ["n0"]
    # The taint of nodes with GPUs does not keep it away, though it asks for none.
    assert {"key": GPU, "operator": "Exists"} in spec["tolerations"]
    (downloader,), (main,) = spec["initContainers"], spec["containers"]
    assert GPU not in {*main["resources"]["requests"], *downloader["resources"]["requests"]}
    assert downloader["command"][-1] == str(7 << 30)
    assert {
        "name": "cache",
        "hostPath": {"path": "/var/cache/ninefold", "type": "Directory"},
    } in spec["volumes"]
    assert spec["activeDeadlineSeconds"] == 24 * 3600


class DownloadingApi(StoringApi):
    """Its pods download their inputs, and say so in the log of their init container; pods can be listed."""

    def _request_json(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        if (method, path) == ("GET", "/api/v1/pods"):
            return listing(*(thing for path, thing in self.stored.items() if "/pods/" in path))
        return super()._request_json(method, path, **options)

    def stream(
        self, path: str, *, query: Mapping[str, str] | None = None, **_options: Any
    ) -> Iterator[bytes]:
        assert (query or {}).get("container") == "inputs", "the workload has no log yet"
        yield b"downloading inputs: 35 of 70 bytes\n"

    def running(self) -> None:
        started = {"running": {"startedAt": "2026-11-29T08:00:00Z"}}
        for path in [path for path in self.stored if "/pods/" in path]:
            self.stored[path]["spec"]["nodeName"] = "n0"
            self.stored[path]["status"] = {
                "phase": "Pending",
                "initContainerStatuses": [{"name": "inputs", "state": started}],
            }


@KINDS
def test_the_progress_of_a_weight_download_is_read_from_its_log(
    kind: type[KubernetesCluster],
) -> None:
    api = DownloadingApi(cluster().stored)
    adapter = caching(kind, api)
    adapter.launch(weights_launch())

    def seen() -> ObservedReplica:
        (replica,) = adapter.observe(["weights-c0ffee"])["weights-c0ffee"].replicas
        return replica

    # No queue is named as what it waits for.
    assert seen().message == "starting"
    api.running()
    assert seen().message == "the inputs are being downloaded"
    assert seen().downloaded == 35


@KINDS
def test_nodes_have_a_cache_to_fill_by_the_option_of_their_cluster(
    kind: type[KubernetesCluster],
) -> None:
    plain = kind(installation=OURS, kubeconfig=yaml.safe_dump(config()))
    assert plain.weight_cache_limit is None
    assert caching(kind, cluster()).weight_cache_limit == 7 << 30
