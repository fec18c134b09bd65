"""Pods of every kind of served model on GPUs and NPUs are what a real API server takes, field by field.

Each engine checks the spec and renders the Launch; the API server validates what stands for it (``dryRun``) and
stores nothing. No accelerator is used: not run on hardware.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from controlplane.adapters.clusters.kubernetes.launch_plans import LaunchPlan
from controlplane.domain.serving.model_kinds import ModelKind
from controlplane.ports.adapter_registry import all_chips, engine_by_name
from controlplane.ports.engines import ModelFacts, ServedAdapter
from controlplane.ports.launches import InputArtifact, Launch, LaunchPlacement
from tests.kubernetes.clusters import LiveCluster
from tests.kubernetes.control_planes import ControlPlane
from tests.kubernetes.test_manifests import SWITCHED_OFF, collection, lost
from tests.unit.adapters.kubernetes.test_pods import objects
from tests.unit.adapters.volcano.plans import planned
from tests.unit.deployment.kustomizations import title
from tests.unit.engines.serving_requests import (
    ACROSS_NODES,
    CHIPS,
    ENGINES,
    IMAGE_SPEC,
    IMAGES,
    PLAIN,
    SPEECH,
    findings,
    rendered,
)

pytestmark = pytest.mark.kubernetes

#: Fields of probes that the server does not know yet; it has the pod's grace instead.
_SINCE_1_21 = frozenset({"spec.containers[0].livenessProbe.terminationGracePeriodSeconds"})

#: A model of each kind, and its spec.
MODELS: Mapping[ModelKind, tuple[ModelFacts, Mapping[str, Any]]] = {
    ModelKind.TEXT: (PLAIN, {"model_name": "assistant"}),
    ModelKind.EMBEDDING: (
        replace(PLAIN, name="qwen3-embedding-8b", files=frozenset({"modules.json"})),
        {"model_name": "assistant"},
    ),
    ModelKind.RERANKER: (
        replace(PLAIN, catalog_key="qwen3-reranker-8b"),
        {"model_name": "assistant"},
    ),
    ModelKind.IMAGE: (IMAGES, IMAGE_SPEC),
    ModelKind.VIDEO: (replace(IMAGES, architecture="WanPipeline"), IMAGE_SPEC),
    ModelKind.SPEECH: (SPEECH, {"model_name": "assistant"}),
    ModelKind.TRANSCRIPTION: (
        replace(PLAIN, name="qwen3-asr-1.7b", architecture="Qwen3ASRForConditionalGeneration"),
        {"model_name": "assistant"},
    ),
}
ADAPTERS = tuple(
    ServedAdapter(name=f"adapter-{number}", input=f"adapter-{number}", rank=16) for number in (1, 2)
)


def launches() -> Iterator[tuple[ModelKind, str, str, Launch]]:
    """What each engine renders of each kind of model that it accepts on each chip, on one node and on two."""
    text, served = MODELS[ModelKind.TEXT]
    for engine, chip in ACROSS_NODES:
        launch = rendered(
            engine, served, chip=chip, model=text, nodes=2, inputs=input_trees("model")
        )
        yield ModelKind.TEXT, engine, chip, launch
    for kind, (model, spec) in MODELS.items():
        assert model.kind is kind
        for engine in (*ENGINES, "tei", "vllm_omni"):
            for chip in CHIPS:
                if findings(engine, spec, chip=chip, model=model):
                    continue
                support = engine_by_name(engine).profile().lora
                adapters = ADAPTERS if kind is ModelKind.TEXT and support else ()
                inputs = input_trees("model", *(each.input for each in adapters))
                launch = rendered(
                    engine,
                    spec,
                    chip=chip,
                    model=model,
                    adapters=adapters,
                    inputs=inputs,
                    placements=(LaunchPlacement(node="n0", cards=(0,)),),
                )
                yield kind, engine, chip, launch


def input_trees(*names: str) -> tuple[InputArtifact, ...]:
    files = {"config.json": f"sha256:{'ab' * 32}"}
    return tuple(InputArtifact(name=name, files=files) for name in names)


def plan_of(launch: Launch, *, chip: str) -> LaunchPlan:
    plan = planned(*launch.roles, chip=chip, reach="node_port", store={"host_path": "/srv/store"})
    return replace(plan, launch=replace(launch, labels=plan.launch.labels))


@pytest.fixture
def server(live_cluster: LiveCluster) -> Iterator[ControlPlane]:
    plane = live_cluster.control_plane
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ninefold-vision"}}
    plane.request("POST", "/api/v1/namespaces", body=namespace).raise_for_status()
    yield plane
    plane.request("DELETE", "/api/v1/namespaces/ninefold-vision").raise_for_status()


def test_the_server_takes_each_kind_of_model_on_gpus_and_npus_whole(server: ControlPlane) -> None:
    refused: list[str] = []
    vendors: dict[tuple[ModelKind, str], set[str]] = defaultdict(set)
    for kind, engine, chip, launch in launches():
        vendors[kind, engine].add(all_chips()[chip].vendor)
        for manifest in objects(plan_of(launch, chip=chip)):
            answer = server.request("POST", f"{collection(manifest)}?dryRun=All", body=manifest)
            nodes = len(launch.roles[0].placements)
            what = f"{kind} on {engine} and {nodes} × {chip}: {title(manifest)}"
            if answer.status_code != 201:
                refused.append(f"{what}: {answer.text}")
                continue
            sent = {name: value for name, value in manifest.items() if name != "stringData"}
            missing = set(lost(sent, answer.json())) - SWITCHED_OFF - _SINCE_1_21
            refused += [f"{what}: {each}" for each in sorted(missing)]
    assert refused == []
    both, gpu, npu = {"nvidia", "ascend"}, {"nvidia"}, {"ascend"}
    assert vendors == {
        (ModelKind.TEXT, "vllm"): gpu,
        (ModelKind.TEXT, "vllm_ascend"): npu,
        (ModelKind.TEXT, "sglang"): both,
        (ModelKind.TEXT, "mindie"): npu,
        (ModelKind.TEXT, "xllm"): both,
        (ModelKind.EMBEDDING, "vllm"): gpu,
        (ModelKind.EMBEDDING, "vllm_ascend"): npu,
        (ModelKind.EMBEDDING, "sglang"): both,
        (ModelKind.EMBEDDING, "tei"): gpu,
        (ModelKind.EMBEDDING, "xllm"): both,
        (ModelKind.RERANKER, "vllm"): gpu,
        (ModelKind.RERANKER, "vllm_ascend"): npu,
        (ModelKind.IMAGE, "vllm_omni"): both,
        (ModelKind.VIDEO, "vllm_omni"): both,
        (ModelKind.SPEECH, "vllm_omni"): both,
        (ModelKind.TRANSCRIPTION, "sglang"): gpu,
        (ModelKind.TRANSCRIPTION, "vllm"): gpu,
        (ModelKind.TRANSCRIPTION, "vllm_ascend"): npu,
    }
