"""A small company for the tests: two teams, a fake cluster, an engine, a model and a dataset.

The loops are turned by hand and nothing else moves: what the cluster's processes do is said by the test.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from django.db import transaction
from django.utils import timezone

from apps.accounts import services as accounts
from apps.accounts.models import Team, User
from apps.fleet import reconcilers as fleet_reconcilers
from apps.fleet import selectors as fleet
from apps.fleet.models import Cluster
from apps.jobs import services as jobs
from apps.jobs.models import Attempt, Job
from apps.jobs.reconcilers import attempts
from apps.jobs.selectors import latest_attempt
from apps.models import selectors as registry_selectors
from apps.models.models import ArtifactKind, DatasetVersion, ModelVersion
from apps.models.services.artifact_storage import File, artifact_create
from apps.models.services.datasets import dataset_upload
from apps.models.services.model_versions import reserve_model_version_number
from apps.quotas import reconcilers as scheduling
from apps.quotas.models import Entitlement, Queue
from apps.serving import reconcilers as serving_controllers
from apps.workflows import reconcilers as workflow_controllers
from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.permissions import TeamRole
from controlplane.domain.common.spec_fields import FieldFinding, FieldLimit, SpecField
from controlplane.domain.jobs.lifecycle import JobKind
from controlplane.domain.registry.versions import ModelState
from controlplane.domain.scheduling.plans import SchedulingPolicy
from controlplane.ports.clusters import ReplicaPhase
from controlplane.ports.engines import ROLES, EngineProfile, EngineTask, ModelFacts, RenderRequest
from controlplane.ports.launches import (
    EngineEnvironment,
    Launch,
    LaunchPlacement,
    LaunchRole,
    ReadinessProbe,
)
from tests.databases import RecordedRows

ENGINE = "plain"


class PlainEngine:
    """Implements ``controlplane.ports.engines.Engine``; takes every spec but ``{"refuse": reason}``."""

    name = ENGINE
    tasks = frozenset(EngineTask)

    def profile(self) -> EngineProfile:
        return EngineProfile(title="Plain")

    def environment(self) -> EngineEnvironment:
        return EngineEnvironment(name="plain-1", preinstall=(), lock="")

    def fields(self, task: EngineTask) -> tuple[SpecField, ...]:
        return ()

    def unsupported_reason(self, task: EngineTask, chip: Chip) -> str:
        return ""

    def limits(
        self, task: EngineTask, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[FieldLimit, ...]:
        return ()

    def check(
        self,
        task: EngineTask,
        spec: Mapping[str, Any],
        *,
        chip: Chip | None,
        model: ModelFacts | None,
    ) -> tuple[FieldFinding, ...]:
        if "refuse" in spec:
            return (FieldFinding(field="refuse", message=str(spec["refuse"])),)
        return ()

    def recommended_values(
        self, task: EngineTask, *, model: ModelFacts | None
    ) -> Mapping[str, Any]:
        return {}

    def normalise(self, task: EngineTask, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"split": "test", **spec}

    def render(self, request: RenderRequest) -> Launch:
        serves = request.task is EngineTask.SERVE
        return Launch(
            name=request.name,
            roles=(
                LaunchRole(
                    name=ROLES[request.task],
                    argv=("{python}", "-m", "program"),
                    placements=(
                        *request.placements,
                        *[
                            LaunchPlacement(node=request.placements[0].node)
                            for _ in range(request.spec.get("further_processes", 0))
                        ],
                    ),
                    ports=("http",) if serves else (),
                    probe=ReadinessProbe(port="http", path="/health") if serves else None,
                ),
            ),
            files={"spec.json": json.dumps(dict(request.spec), sort_keys=True)},
            inputs=request.inputs,
            secrets={"NINEFOLD_ENGINE_KEY": request.token},
            continues=request.continues,
            labels=request.labels,
        )


def stored(path: str, content: bytes) -> File:
    """The content as a blob of the store, under that path."""
    blob = registry_selectors.artifact_store().put([content])
    return path, blob.digest, blob.size


def safetensors(**shapes: tuple[int, ...]) -> bytes:
    """A file with the header of those tensors."""
    header = json.dumps({name: {"dtype": "F32", "shape": shape} for name, shape in shapes.items()})
    return struct.pack("<Q", len(header)) + header.encode()


CONFIG = json.dumps(
    {"architectures": ["Qwen2ForCausalLM"], "max_position_embeddings": 512}
).encode()


def model_contents() -> dict[str, bytes]:
    return {"config.json": CONFIG, "model.safetensors": safetensors(embed=(8, 4), head=(4, 8))}


def quantized_contents() -> dict[str, bytes]:
    """A model whose weights are quantized to w4a16."""
    group = {"weights": {"num_bits": 4, "type": "int"}}
    quantized = {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}}
    config = json.loads(CONFIG) | {"quantization_config": quantized}
    packed = safetensors(**{"head.weight_packed": (4, 1), "head.weight_scale": (4, 1)})
    return {"config.json": json.dumps(config).encode(), "model.safetensors": packed}


@dataclass(kw_only=True)
class Company:
    team: Team
    other_team: Team
    engineer: User
    stranger: User
    queue: Queue
    cluster_row: Cluster
    cluster: FakeCluster
    model: ModelVersion
    dataset: DatasetVersion
    at: datetime

    def later(self, amount: timedelta) -> datetime:
        """Let time pass; says what time it is then."""
        self.at += amount
        return self.at

    def take_stock(self) -> None:
        fleet_reconcilers.inventories_sync(at=self.at)

    def schedule(self) -> int:
        return scheduling.cycle_run(policy=SchedulingPolicy(), at=self.at)

    def turn_jobs(self) -> None:
        attempts.attempts_reconcile(at=self.at)

    def turn_deployments(self) -> None:
        serving_controllers.deployments_reconcile(at=self.at)
        serving_controllers.replicas_reconcile(at=self.at)

    def turn_pipelines(self) -> None:
        workflow_controllers.pipelines_reconcile(at=self.at)

    def submit(self, name: str = "tune the parser", **changes: Any) -> Job:
        request = jobs.JobRequest(
            **{
                "kind": JobKind.FINETUNE,
                "name": name,
                "spec": {},
                "queue": self.queue,
                "engine": ENGINE,
                "model_version": self.model,
                "dataset_version": self.dataset,
                "output_name": "parser",
                **changes,
            }
        )
        return jobs.job_submit(actor=self.engineer, team=self.team, request=request)

    def make_queue_admin(self) -> None:
        """The engineer may then ask for a priority."""
        accounts.membership_set(
            team=self.team,
            user=self.engineer,
            roles=frozenset({TeamRole.ENGINEER, TeamRole.QUEUE_ADMIN}),
            actor=None,
        )

    def launched(self, **changes: Any) -> tuple[Job, Attempt]:
        """A job whose processes have been started and do not run yet."""
        job = self.submit(**changes)
        self.schedule()
        self.turn_jobs()
        return job, latest_attempt(job)

    def running(self, **changes: Any) -> tuple[Job, Attempt]:
        job, attempt = self.launched(**changes)
        self.cluster.run(attempt.launch_name)
        self.turn_jobs()
        attempt.refresh_from_db()
        return job, attempt

    def report_outputs(
        self,
        attempt: Attempt,
        contents: Mapping[str, bytes] | None = None,
        metrics: Mapping[str, Any] | None = None,
    ) -> None:
        """As the runtime does at its end: upload each file, then the manifest."""
        files = []
        for path, content in (contents or model_contents()).items():
            _, digest, size = stored(path, content)
            jobs.attempt_upload_record(attempt=attempt, path=path, digest=digest, size=size)
            sha256 = hashlib.sha256(content).hexdigest()
            files.append({"path": path, "sha256": sha256, "size": size})
        manifest = {"files": files, "metrics": dict(metrics or {"loss": 0.5})}
        jobs.attempt_manifest_store(attempt=attempt, manifest=manifest)

    def finish(
        self,
        attempt: Attempt,
        contents: Mapping[str, bytes] | None = None,
        metrics: Mapping[str, Any] | None = None,
    ) -> None:
        """The program ends well, its outputs reported."""
        self.report_outputs(attempt, contents, metrics)
        self.cluster.finish(attempt.launch_name)

    def phase_of(self, name: str) -> ReplicaPhase | None:
        """What the cluster says of the first replica of a Launch; None if it knows none."""
        observed = self.cluster.observe([name]).get(name)
        return observed.replicas[0].phase if observed else None


def entitle(
    queue: Queue,
    *,
    chip: str = "cpu",
    reserved: int = 0,
    guaranteed: int = 0,
    cap: int | None = None,
) -> None:
    """What the queue states for the chip from now on, whatever it stated before; all chips together for ``""``."""
    stated = {"reserved": reserved, "guaranteed": guaranteed, "cap": cap}
    Entitlement.objects.update_or_create(queue=queue, chip=chip, defaults=stated)


def found(*, node: str, cards: int = 2) -> Company:
    """A company with one node of so many cards, its stock taken."""
    now = timezone.now()
    # What a test with a clock of its own makes is of its time, and not for others.
    clock_is_real = abs(now - datetime.now(UTC)) < timedelta(seconds=1)
    members = RecordedRows.replayed(_create_members) if clock_is_real else _create_members()
    row = Cluster.objects.create(name=node, kind="fake", options={"node": node, "cards": cards})
    company = Company(
        **members,
        cluster_row=row,
        cluster=cast(FakeCluster, fleet.cluster_adapter(row)),
        at=timezone.now(),
    )
    company.take_stock()
    return company


def _create_members() -> dict[str, Any]:
    """All of a company but its cluster, by the names of its attributes."""
    engineer = User.objects.create(username="mei")
    stranger = User.objects.create(username="otto")
    team = Team.objects.create(name="Addresses", slug="addresses")
    other_team = Team.objects.create(name="Routing", slug="routing")
    accounts.membership_set(
        team=team, user=engineer, roles=frozenset({TeamRole.ENGINEER}), actor=None
    )
    accounts.membership_set(
        team=other_team, user=stranger, roles=frozenset({TeamRole.ENGINEER}), actor=None
    )
    return {
        "team": team,
        "other_team": other_team,
        "engineer": engineer,
        "stranger": stranger,
        "queue": Queue.objects.create(name="default"),
        "model": ready_model(team=team, name="tiny"),
        "dataset": dataset_upload(
            actor=engineer, team=team, name="addresses", stream=rows(40), filename="rows.jsonl"
        ),
    }


def rows(count: int) -> io.BytesIO:
    """One row in four is held out for testing."""
    lines = [
        json.dumps(
            {
                "prompt": f"where is {n}?",
                "response": f"at {n}",
                "split": "train" if n % 4 else "test",
            }
        )
        for n in range(count)
    ]
    return io.BytesIO("\n".join(lines).encode())


@transaction.atomic
def ready_model(*, team: Team | None, name: str) -> ModelVersion:
    files = [stored(path, content) for path, content in model_contents().items()]
    line, number = reserve_model_version_number(team=team, name=name)
    return ModelVersion.objects.create(
        line=line,
        number=number,
        state=ModelState.READY,
        artifact=artifact_create(team=team, kind=ArtifactKind.MODEL, files=files),
        architecture="Qwen2ForCausalLM",
        context_length=512,
        parameters=64,
    )


def write_model(folder: Path) -> Path:
    """A folder that can be registered."""
    folder.mkdir(parents=True)
    for name, content in model_contents().items():
        (folder / name).write_bytes(content)
    return folder
