"""Rows as the product itself would make them, for tests of its interfaces."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.accounts.models import Membership, Team, User
from apps.fleet import services as fleet
from apps.fleet.models import Cluster
from apps.jobs import services as jobs
from apps.jobs.models import Attempt, Job
from apps.models.models import DatasetVersion, Evaluation, ModelVersion
from apps.models.selectors import artifact_store
from apps.models.services import datasets, outputs
from apps.quotas.models import Claim, Queue
from apps.quotas.reconcilers import cycle_run
from apps.serving.models import ApiKey, Backend, Deployment, Replica
from apps.serving.services import deployments
from apps.serving.services.configurations import Configuration
from apps.serving.services.keys import key_create
from apps.workflows import services as workflows
from apps.workflows.models import Pipeline
from apps.workflows.services.lives import step_move
from controlplane.domain.claims import ReleaseReason
from controlplane.domain.jobs import AttemptEvent, JobEvent, JobKind
from controlplane.domain.permissions import Role
from controlplane.domain.pipelines import Gate, PipelineEvent, StepEvent, StepKind, judge
from controlplane.domain.quantization import verdict
from controlplane.domain.resources import Bytes, Millicpu, Resources
from controlplane.domain.scheduling.cycle import Policy
from controlplane.domain.serving import DeploymentEvent, ReplicaEvent
from controlplane.ports.clusters import ObservedCard, ObservedNode

#: Held out by the dataset's own rule: at least one row is not for training.
ROWS = 40
File = tuple[str, str, int]


def person(
    name: str = "ada", *, team: Team | None = None, role: Role = Role.ENGINEER, admin: bool = False
) -> User:
    """Somebody who can log in with the password ``open sesame``."""
    user = User.objects.create_user(
        name, password="open sesame", is_superuser=admin, is_staff=admin
    )
    if team is not None:
        Membership.objects.create(user=user, team=team, role=role)
    return user


def team(name: str = "maps") -> Team:
    return Team.objects.create(name=name, slug=name)


def queue(**values: Any) -> Queue:
    """Open to every team."""
    return Queue.objects.create(name=values.pop("name", "default"), **values)


def cluster(*, cards: int = 2, name: str = "here", kind: str = "local") -> Cluster:
    """A cluster that has reported one node with that many cards of chip ``cpu``."""
    row = fleet.cluster_ensure(name=name, kind=kind)
    node = ObservedNode(
        name=f"{name}-1",
        cards=tuple(ObservedCard(index=index, chip="cpu") for index in range(cards)),
        capacity=Resources(cpu=Millicpu(8000), memory=Bytes(16 << 30)),
    )
    fleet.inventory_record(
        cluster=row, nodes=[node], isolation="own uid, scrubbed environment", at=timezone.now()
    )
    return row


def dataset_version(
    *, actor: User, team: Team, name: str = "addresses", rows: int = ROWS
) -> DatasetVersion:
    lines = [
        {"instruction": f"浙江省丽水市龙泉市广田村{n}组", "output": f"浙江省_1,广田村{n}组_4B"}
        for n in range(rows)
    ]
    body = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines).encode()
    return datasets.dataset_upload(
        actor=actor,
        team=team,
        name=name,
        stream=io.BytesIO(body),
        filename=f"{name}.jsonl",
        description="Where parcels go",
    )


def stored(path: str, content: bytes) -> File:
    """A file in the artifact store."""
    blob = artifact_store().put([content])
    return path, blob.digest, blob.size


def model_files() -> list[File]:
    """A model small enough for a unit of a test, and real enough to be registered."""
    config = {"architectures": ["Qwen2ForCausalLM"], "max_position_embeddings": 512}
    header = json.dumps({"w": {"dtype": "F32", "shape": [4, 8], "data_offsets": [0, 128]}}).encode()
    weights = struct.pack("<Q", len(header)) + header + bytes(128)
    return [
        stored("config.json", json.dumps(config).encode()),
        stored("model.safetensors", weights),
    ]


def model_version(
    *,
    actor: User,
    team: Team,
    name: str = "tiny-qwen2",
    base: ModelVersion | None = None,
    trained_on: DatasetVersion | None = None,
    job: Job | None = None,
) -> ModelVersion:
    """One that is ready; as if a job had made it."""
    number = ModelVersion.objects.count() + 1
    origin = outputs.Origin(
        team=team,
        actor=actor,
        job_uid=job.uid if job else "",
        attempt_uid=f"attempt-of-model-{number}",
    )
    return outputs.model_version_register(
        origin=origin,
        name=name,
        files=model_files(),
        base=base,
        dataset_version=trained_on,
        metrics={"loss": 0.4321} if job else {},
    )


def quantized_files(answers: int = 6) -> list[File]:
    """A model whose weights are quantized to w4a16, with what its run measured."""
    group = {"weights": {"num_bits": 4, "type": "int"}}
    quantization = {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}}
    plain = {path: digest for path, digest, _ in model_files()}
    with artifact_store().open(plain["config.json"]) as stream:
        config = json.load(stream) | {"quantization_config": quantization}
    report = {
        "scheme": "w4a16-awq",
        "group_size": 64,
        "layers": 21,
        "calibration_split": "train",
        "calibration_rows": 128,
        "split": "test",
        "rows": answers,
        "software": {"llmcompressor": "0.14.0.1", "compressed-tensors": "0.19.0"},
    }
    lines = [
        {
            "row": number,
            "prompt": f"浙江省丽水市龙泉市广田村{number}号",
            "reference": f"浙江省_1,丽水市_2,龙泉市_3,广田村_4,{number}号_5",
            "before": f"浙江省_1,丽水市_2,龙泉市_3,广田村_4,{number}号_5",
            "after": f"浙江省_1,丽水市_2,龙泉市_3,广田村_4,{number}号_{5 if number % 3 else 4}",
            "right_before": True,
            "right_after": bool(number % 3),
        }
        for number in range(1, answers + 1)
    ]
    written = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    others = [file for file in model_files() if file[0] != "config.json"]
    return [
        *others,
        stored("config.json", json.dumps(config).encode()),
        stored("quantization/report.json", json.dumps(report).encode()),
        stored("quantization/answers.jsonl", written.encode()),
    ]


@transaction.atomic
def quantized_version(
    *,
    actor: User,
    team: Team,
    base: ModelVersion,
    name: str = "tiny-qwen2-w4a16",
    lost: float = 0.0,
    attempt: Attempt | None = None,
) -> ModelVersion:
    """One that is ready and lost so many points of exact match; beyond one it is not accepted."""
    number = ModelVersion.objects.count() + 1
    metrics = {
        "size_before": 2_801_664,
        "size_after": 1_098_960,
        "layers_size_before": 1_970_688,
        "layers_size_after": 267_984,
        "perplexity_before": 1.0236,
        "perplexity_after": 1.0241,
        "exact_match_before": 0.875,
        "exact_match_after": 0.875 - lost / 100,
        "answers_per_second_before": 19.5,
        "answers_per_second_after": 14.2,
    }
    tolerance = {"perplexity_increase": 0.05, "accuracy_drop": 0.01}
    return outputs.model_version_register(
        origin=outputs.Origin(
            team=team,
            actor=actor,
            job_uid=attempt.job.uid if attempt else "",
            attempt_uid=attempt.uid if attempt else f"attempt-of-quantized-{number}",
        ),
        name=name,
        files=quantized_files(),
        base=base,
        dataset_version=attempt.job.dataset_version if attempt else None,
        metrics=metrics,
        verdict=verdict(metrics, wanted=["perplexity", "exact_match"], tolerance=tolerance),
    )


def evaluation(
    *, model: ModelVersion, dataset: DatasetVersion, exact_match: float = 0.75, actor: User
) -> Evaluation:
    number = Evaluation.objects.count() + 1
    team = dataset.dataset.team
    return outputs.evaluation_register(
        origin=outputs.Origin(
            team=team, actor=actor, job_uid="", attempt_uid=f"attempt-of-evaluation-{number}"
        ),
        model_version=model,
        dataset_version=dataset,
        split="validation",
        files=[stored("report.json", f'{{"exact_match": {exact_match}}}'.encode())],
        metrics={"exact_match": exact_match, "perplexity": 3.25},
    )


def job(
    *,
    actor: User,
    team: Team,
    queue: Queue,
    model: ModelVersion | None = None,
    dataset: DatasetVersion | None = None,
    name: str = "teach addresses",
    kind: JobKind = JobKind.FINETUNE,
    spec: Mapping[str, Any] | None = None,
    cards: int = 1,
) -> Job:
    """A submitted job, waiting."""
    request = jobs.JobRequest(
        kind=kind,
        name=name,
        spec=spec or ({"argv": ["python", "-V"]} if kind is JobKind.SCRIPT else {}),
        queue=queue,
        model_version=model,
        dataset_version=dataset,
        output_name="addresses" if kind is JobKind.FINETUNE else "",
        cards=cards,
    )
    return jobs.job_submit(actor=actor, team=team, request=request)


def schedule(*, at: datetime | None = None) -> None:
    """One turn of the scheduler: admits what fits and says why the rest waits."""
    cycle_run(policy=Policy(), at=at or timezone.now())
    for attempt in Attempt.objects.filter(state="pending"):
        claim = Claim.objects.get(uid=attempt.claim_uid)
        Attempt.objects.filter(pk=attempt.pk).update(message=claim.explanation)


def running(job: Job, *, cluster: Cluster, steps: int = 10, total: int = 40) -> Attempt:
    """The job's attempt with cards, running, having reported ``steps`` points."""
    at = timezone.now()
    schedule(at=at)
    attempt = job.attempts.latest("number")
    for event, reason, changes in (
        (AttemptEvent.ADMIT, "given a card", {"chip": "cpu", "admitted_at": at}),
        (AttemptEvent.LAUNCH, "starting", {}),
        (AttemptEvent.RUN, "running", {"started_at": at}),
    ):
        jobs.attempt_move(attempt, event, at=at, reason=reason, **changes)
    Attempt.objects.filter(pk=attempt.pk).update(cluster=cluster)
    job.refresh_from_db()
    jobs.job_move(job, JobEvent.START, at=at, reason="running")
    points = [
        {
            "step": step,
            "total_steps": total,
            "loss": 5.0 / (1 + step),
            "learning_rate": 0.001,
            "tokens_per_second": 1234.5,
            "eta_seconds": 90.0,
        }
        for step in range(1, steps + 1)
    ]
    jobs.progress_record(attempt=attempt, points=points, at=at)
    attempt.refresh_from_db()
    return attempt


def failed(job: Job, *, cluster: Cluster) -> Attempt:
    """The job's attempt ended badly, with the last lines of its log."""
    attempt = running(job, cluster=cluster)
    jobs.attempt_end(
        attempt=attempt,
        event=AttemptEvent.FAIL,
        job_event=JobEvent.FAIL,
        at=timezone.now(),
        reason="ended with exit code 28: the disk is full",
        release=ReleaseReason.FINISHED,
        exit_code=28,
        log_tail="step 9 of 40\nNo space left on device",
        log_digest=stored("log", b"step 9 of 40\nNo space left on device\n")[1],
    )
    job.refresh_from_db()
    return attempt


def succeeded(job: Job, *, cluster: Cluster) -> ModelVersion | None:
    """The job's attempt ended well; a fine-tune's version comes back."""
    attempt = running(job, cluster=cluster, steps=40)
    at = timezone.now()
    jobs.attempt_move(attempt, AttemptEvent.FINISH, at=at, reason="registering what it made")
    origin = outputs.Origin(
        team=job.team, actor=job.created_by, job_uid=job.uid, attempt_uid=attempt.uid
    )
    made = None
    if job.kind == JobKind.FINETUNE:
        made = outputs.model_version_register(
            origin=origin,
            name=job.output_name,
            files=model_files(),
            base=job.model_version,
            dataset_version=job.dataset_version,
            metrics={"loss": 0.12},
        )
    else:
        outputs.outputs_register(origin=origin, files=[stored("answer.txt", b"forty-two")])
    jobs.attempt_end(
        attempt=attempt,
        event=AttemptEvent.COMPLETE,
        job_event=JobEvent.SUCCEED,
        at=at,
        reason=f"made {made}" if made else "made 1 files",
        release=ReleaseReason.FINISHED,
        exit_code=0,
        log_digest=stored("log", "第一行\nstep 40 of 40\n".encode())[1],
    )
    job.refresh_from_db()
    return made


def deployment(
    *, actor: User, team: Team, queue: Queue, model: ModelVersion, name: str = "parcels"
) -> Deployment:
    """One that starts, without replicas yet."""
    return deployments.deployment_create(
        actor=actor,
        team=team,
        name=name,
        configuration=Configuration(model_version=model),
        queue=queue,
    )


def replica(deployment: Deployment, *, cluster: Cluster, ready: bool = True) -> Replica:
    """Its replica: ready, or waiting for its restart after a crash, the deployment degraded."""
    backend = Backend.objects.get(revision__deployment=deployment)
    row = deployments.replica_create(backend=backend, deployment=deployment)
    at = timezone.now()
    schedule(at=at)
    Replica.objects.filter(pk=row.pk).update(cluster=cluster, chip="cpu")
    row.refresh_from_db()
    deployments.replica_move(row, ReplicaEvent.ADMIT, at=at, reason="given a card")
    deployments.replica_move(row, ReplicaEvent.LAUNCH, at=at, reason="starting")
    if ready:
        deployments.replica_move(
            row,
            ReplicaEvent.BECOME_READY,
            at=at,
            reason="ready",
            url="http://127.0.0.1:9",
            ready_at=at,
        )
        event, reason = DeploymentEvent.BECOME_READY, "1 of 1 replicas ready"
    else:
        deployments.replica_move(
            row,
            ReplicaEvent.CRASH,
            at=at,
            reason="ended with exit code 1; starts again",
            crashes=3,
            restart_at=at + timedelta(seconds=40),
            log_tail="Traceback: out of memory",
        )
        event, reason = DeploymentEvent.DEGRADE, "0 of 1 replicas ready"
    deployment.refresh_from_db()
    deployments.deployment_move(deployment, event, at=at, reason=reason)
    return row


def pipeline(
    *,
    actor: User,
    team: Team,
    queue: Queue,
    model: ModelVersion,
    dataset: DatasetVersion,
    name: str = "the whole way",
    state: str = "running",
    serve_as: str = "",
) -> Pipeline:
    """Fine-tune, evaluate behind a gate and deploy, as far as it is in that state; nothing runs of it.

    ``state`` is ``running``, ``failed``, ``held`` or ``cancelled``.
    """
    kinds = [StepKind.FINETUNE, StepKind.EVALUATE, StepKind.DEPLOY]
    gate = Gate(figure="exact_match", threshold=0.8)
    asked = [
        workflows.StepRequest(
            kind=kind,
            dataset_version=None if kind is StepKind.DEPLOY else dataset,
            output_name="addresses" if kind is StepKind.FINETUNE else "",
            deployment_name=(serve_as or f"{name.replace(' ', '-')}") if kind is kinds[-1] else "",
            gate=gate if kind is StepKind.EVALUATE else None,
        )
        for kind in kinds
    ]
    made = workflows.pipeline_submit(
        actor=actor,
        team=team,
        request=workflows.PipelineRequest(
            name=name, model_version=model, queue=queue, steps=tuple(asked)
        ),
    )
    at = timezone.now()
    tune, measure, _serve = made.steps.order_by("number")
    begin: dict[str, Any] = {"at": at, "reason": "waiting for cards", "began_at": at}
    step_move(tune, StepEvent.BEGIN, model_version=model, **begin)
    if state == "running":
        return made
    if state == "cancelled":
        reason = f"cancelled by {actor.username}"
        step_move(tune, StepEvent.CANCEL, at=at, reason=reason, ended_at=at)
        workflows.pipeline_move(made, PipelineEvent.CANCEL, at=at, reason=reason)
        return made
    if state == "failed":
        reason = "ended with exit code 28: the disk is full"
        step_move(tune, StepEvent.FAIL, at=at, reason=reason, ended_at=at)
        told = f"step 1 failed: {reason}"
        workflows.pipeline_move(made, PipelineEvent.FAIL, at=at, reason=told)
        return made
    step_move(tune, StepEvent.SUCCEED, at=at, reason="made addresses", ended_at=at)
    step_move(measure, StepEvent.BEGIN, model_version=model, **begin)
    verdict = judge(gate, figures={"exact_match": 0.61})
    step_move(
        measure,
        StepEvent.MISS,
        at=at,
        reason=verdict.reason,
        ended_at=at,
        figures={"exact_match": 0.61},
        gate_passed=False,
        gate_verdict=verdict.reason,
    )
    told = f"step 2 misses its gate: {verdict.reason}"
    workflows.pipeline_move(made, PipelineEvent.HOLD, at=at, reason=told)
    return made


def api_key(*, actor: User, team: Team, name: str = "batch labels") -> tuple[ApiKey, str]:
    return key_create(actor=actor, team=team, name=name, at=timezone.now())
