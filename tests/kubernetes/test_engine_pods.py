"""The command of each engine starts in a pod whose image stands in for the real one (``stand_in_images``).

Every Launch is rendered by the engine's plug-in and started by the product's adapter on the test cluster. An
engine that serves becomes ready, and so does each process of a replica on two nodes, for which the node stands
twice; one that trains succeeds and leaves a model. Then each rule of each image is changed in one more pod, which
has to fail and name the rule. The folders of an Ascend driver are not mounted, as this machine has none. No
accelerator and no real image is used: not run on hardware.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from controlplane.adapters.artifacts.filesystem import FilesystemArtifacts
from controlplane.adapters.clusters.kubernetes import KubernetesCluster, launching
from controlplane.ports.adapter_registry import all_chips, engine_by_name
from controlplane.ports.clusters import ObservedLaunch, ObservedReplica, ReplicaPhase
from controlplane.ports.engines import EngineTask, RenderRequest
from controlplane.ports.launches import InputArtifact, Launch, LaunchPlacement
from tests.contract.cluster_harness import end_all
from tests.contract.waiting import until
from tests.kubernetes import stand_in_images
from tests.kubernetes.clusters import NODE, LiveCluster
from tests.kubernetes.stand_in import CHANGED
from tests.kubernetes.stand_in_images import IMAGES, MOUNTED, StandInImage
from tests.unit.engines.serving_requests import ACROSS_NODES

pytestmark = pytest.mark.kubernetes

ENDED_WITHIN = 120.0
KEY = "k3y-of-the-replica"
#: The chips of the node. Its NPUs are the cards 0 to 7, its GPUs 8 to 15.
LABELS = {
    "nvidia.com/gpu.product": "NVIDIA-H800",
    "node.kubernetes.io/npu.chip.name": "910B3",
}
#: Not the first of their kind, so that a pod's own numbers, which begin with 0, are others.
FIRST_CARDS = {"ascend": 2, "nvidia": 10}
#: Pods at a time for each vendor's cards.
AT_A_TIME = 4
SPECS: Mapping[EngineTask, Mapping[str, Any]] = {
    EngineTask.SERVE: {"model_name": "assistant"},
    EngineTask.FINETUNE: {"method": "lora", "max_steps": 1},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One Launch, of one pod for each node, and what is expected of it."""

    launch: Launch
    vendor: str
    task: EngineTask
    #: The rule that is changed; empty: none, and the engine works.
    changed: str = ""

    @property
    def pods(self) -> int:
        return len(self.launch.roles[0].placements)

    def done(self, seen: ObservedLaunch) -> bool:
        ready = self.task is EngineTask.SERVE and all(
            replica.phase is ReplicaPhase.RUNNING for replica in seen.replicas
        )
        return ready or any(replica.ended for replica in seen.replicas)

    def failure(self, seen: ObservedReplica, log: str) -> str:
        """Why the outcome of one pod is not the expected one; empty if it is."""
        place = (
            f"process {seen.index} of {self.pods} meets the others at {self.launch.name}-server-0."
        )
        if self.pods > 1 and place not in log:
            return "another rank or leader"
        if self.changed:
            named = seen.ended and seen.exit_code != 0 and f"rule {self.changed}" in log
            return "" if named else f"{seen.phase} without naming the rule"
        if self.task is EngineTask.SERVE:
            return "" if seen.phase is ReplicaPhase.RUNNING else "not ready"
        collected = "files of the model are in outputs" in log
        return "" if seen.exit_code == 0 and collected else "no model"


def test_each_engine_starts_in_its_image_and_each_rule_of_the_image_is_enforced(
    live_cluster: LiveCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extras = launching._vendor_pod_settings
    monkeypatch.setattr(
        launching, "_vendor_pod_settings", lambda replicas: replace(extras(replicas), host_paths=())
    )
    archive, store = tmp_path / "stand-ins.tar", tmp_path / "store"
    stand_in_images.write(archive)
    live_cluster.node.import_images(archive)
    with accelerators(live_cluster), cluster_of(live_cluster, store=store) as cluster:
        failures = Pods(cluster).run(cases(inputs(store)))
    assert not failures, "\n\n".join(failures)


def test_every_rule_names_its_source_and_has_a_name_of_its_own() -> None:
    rules = [rule for image in IMAGES for rule in image.rules]
    assert len({rule.name for rule in rules}) == len(rules)
    assert all(rule.value != rule.changed for rule in rules)
    assert all(": " in rule.source for rule in rules)


def cases(trees: Mapping[str, InputArtifact]) -> list[Case]:
    """The engines first, then one case for each rule."""
    works, violates = [], []
    for image in IMAGES:
        plugin = engine_by_name(image.engine)
        (task,) = plugin.tasks
        launch = rendered(image, task=task, trees=trees)
        assert launch.image == image.image
        case = Case(launch=launch, vendor=all_chips()[image.chip].vendor, task=task)
        works.append(case)
        if (image.engine, image.chip) in ACROSS_NODES:
            across = rendered(image, task=task, trees=trees, nodes=2)
            works.append(replace(case, launch=replace(across, name=f"{launch.name}-across")))
        violates += [
            replace(case, launch=changed(launch, rule.name), changed=rule.name)
            for rule in image.rules
        ]
    return works + violates


def rendered(
    image: StandInImage, *, task: EngineTask, trees: Mapping[str, InputArtifact], nodes: int = 1
) -> Launch:
    chip = all_chips()[image.chip]
    first = FIRST_CARDS[chip.vendor]
    cards = tuple(range(first, first + image.cards))
    names = ("model", "dataset") if task is EngineTask.FINETUNE else ("model",)
    return engine_by_name(image.engine).render(
        RenderRequest(
            task=task,
            name=f"engine-{image.engine.replace('_', '-')}",
            spec=SPECS[task],
            chip=chip,
            placements=(LaunchPlacement(node=NODE, cards=cards),) * nodes,
            inputs=tuple(trees[name] for name in names),
            report_url="https://ninefold.example/api/v1/attempts/1",
            token=KEY,
            model=image.model,
        )
    )


def changed(launch: Launch, rule: str) -> Launch:
    """The same Launch in an image with that rule changed."""
    roles = tuple(
        replace(role, environment={**role.environment, CHANGED: rule}) for role in launch.roles
    )
    return replace(launch, name=f"rule-{rule}", roles=roles)


def inputs(root: Path) -> dict[str, InputArtifact]:
    """A model and a dataset in the product's own store."""
    store = FilesystemArtifacts(root)
    row = '{"messages": [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}]}\n'
    contents = {
        "model": {
            "config.json": "{}",
            "model_index.json": "{}",
            "tokenizer.json": "{}",
            "model.safetensors": "weights",
        },
        "dataset": {"train.jsonl": row, "validation.jsonl": row},
    }
    return {
        name: InputArtifact(
            name=name,
            files={path: store.put([text.encode()]).digest for path, text in files.items()},
        )
        for name, files in contents.items()
    }


@contextmanager
def cluster_of(live: LiveCluster, *, store: Path) -> Iterator[KubernetesCluster]:
    """The adapter; pods that are left are removed after the block."""
    cluster = KubernetesCluster(
        installation="engines",
        kubeconfig=live.kubeconfig.read_text(),
        pull_policy="Never",
        store={"host_path": str(store)},
        mounts=[{"host_path": folder, "at": folder} for folder in MOUNTED],
    )
    try:
        yield cluster
    finally:
        end_all(cluster)
        for name in cluster.names():
            cluster.remove(name)


@contextmanager
def accelerators(live: LiveCluster) -> Iterator[None]:
    """The node's cards have chips for the block."""

    def label(labels: Mapping[str, str | None]) -> None:
        answer = live.control_plane.request(
            "PATCH",
            f"/api/v1/nodes/{NODE}",
            body={"metadata": {"labels": labels}},
            kind="application/merge-patch+json",
        )
        answer.raise_for_status()

    label(LABELS)
    try:
        yield
    finally:
        label(dict.fromkeys(LABELS))


class Pods:
    """Runs cases, as many at a time as the node has cards for, and removes their pods."""

    def __init__(self, cluster: KubernetesCluster) -> None:
        self._cluster = cluster
        self._running: dict[str, Case] = {}
        self._stopping: set[str] = set()

    def run(self, cases: Sequence[Case]) -> list[str]:
        """What did not go as expected, with the end of the log."""
        pending, failures = deque(cases), list[str]()
        while pending or self._running:
            for case in list(pending):
                if self._fits(case):
                    pending.remove(case)
                    self._cluster.launch(case.launch)
                    self._running[case.launch.name] = case
            what = f"one of {sorted(self._running)} ends or is ready"
            for name in until(self._due, within=ENDED_WITHIN, what=what):
                failures += self._advance(name)
        return failures

    def _fits(self, case: Case) -> bool:
        running = (each.pods for each in self._running.values() if each.vendor == case.vendor)
        return sum(running) + case.pods <= AT_A_TIME

    def _due(self) -> list[str]:
        """Launches that have ended, or are ready for the first time."""
        seen = self._cluster.observe(list(self._running))
        return [
            name
            for name, launch in seen.items()
            if launch.ended or (name not in self._stopping and self._running[name].done(launch))
        ]

    def _advance(self, name: str) -> list[str]:
        """Judge the outcome, then stop what is ready and remove what has ended."""
        failures = []
        if name not in self._stopping:
            failures = self._judged(name)
            self._stopping.add(name)
            self._cluster.stop(name, grace=timedelta(0))
        if self._cluster.observe([name])[name].ended:
            self._cluster.remove(name)
            del self._running[name]
        return failures

    def _judged(self, name: str) -> list[str]:
        case, failures = self._running[name], []
        for replica in self._cluster.observe([name])[name].replicas:
            chunk = self._cluster.log(
                name, role=replica.role, index=replica.index, offset=0, limit=1 << 20
            )
            log = chunk.content.decode()
            if failure := case.failure(replica, log):
                what = f"{name} {replica.index}: {failure}"
                failures.append(f"{what}\n{replica.message}\n{log[-2000:]}")
        return failures
