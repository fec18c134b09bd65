"""What somebody wants run, and everything that may be wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.jobs.models import Job
from apps.models import selectors as registry_selectors
from apps.models.models import Artifact, DatasetVersion, ModelVersion
from apps.quotas.models import Queue
from controlplane.domain.fields import Finding
from controlplane.domain.jobs import (
    JobKind,
)
from controlplane.domain.models import ModelState
from controlplane.ports import registry
from controlplane.ports.engines import Task


class SpecRefused(Exception):
    """The request cannot be run as it is; one finding for each thing wrong."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("; ".join(f"{finding.field}: {finding.message}" for finding in findings))
        self.findings = tuple(findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """What somebody wants run."""

    kind: JobKind
    name: str
    spec: Mapping[str, Any]
    queue: Queue
    engine: str = "transformers"
    model_version: ModelVersion | None = None
    dataset_version: DatasetVersion | None = None
    code: Artifact | None = None
    output_name: str = ""
    #: Every team may use what it makes; for administrators of the company.
    output_shared: bool = False
    chips: tuple[str, ...] = ("cpu",)
    cards: int = 1
    #: Bytes for one replica; 0 means no limit.
    memory: int = 0
    priority: int = 0
    run_seconds: int | None = None


def spec_of(request: JobRequest) -> dict[str, Any]:
    """What was asked for, over what the engine recommends for the model."""
    version = request.model_version
    facts = registry_selectors.model_facts(version) if version else None
    recommended = registry.engine(request.engine).recommended(Task(request.kind), model=facts)
    return {**recommended, **request.spec}


def job_check(request: JobRequest) -> tuple[Finding, ...]:
    """Everything wrong with the request; empty means that it can be submitted."""
    findings = [*_check_chips(request), *_check_inputs(request)]
    if request.engine not in registry.engine_names():
        known = ", ".join(registry.engine_names())
        findings.append(
            Finding(field="engine", message=f"no engine is called {request.engine!r}; use {known}")
        )
        return tuple(findings)
    engine = registry.engine(request.engine)
    if Task(request.kind) not in engine.tasks:
        does = ", ".join(sorted(engine.tasks))
        message = f"{request.engine} does not {request.kind}; it does {does}"
        return (*findings, Finding(field="engine", message=message))
    version = request.model_version
    chip = registry.chips().get(request.chips[0]) if request.chips else None
    findings += engine.check(
        Task(request.kind),
        spec_of(request),
        chip=chip,
        model=registry_selectors.model_facts(version) if version else None,
    )
    return tuple(findings)


def job_preview(request: JobRequest) -> tuple[tuple[Finding, ...], Mapping[str, Any] | None]:
    """Everything wrong with the request, and its spec with every default if nothing is."""
    findings = job_check(request)
    if findings:
        return findings, None
    return (), registry.engine(request.engine).normalise(Task(request.kind), spec_of(request))


def _check_chips(request: JobRequest) -> list[Finding]:
    known = registry.chips()
    findings = [
        Finding(field="chips", message=f"no chip is called {chip!r}; known: {', '.join(known)}")
        for chip in request.chips
        if chip not in known
    ]
    if not request.chips:
        findings.append(Finding(field="chips", message="name at least one acceptable chip"))
    if not 1 <= request.cards <= 1024:
        findings.append(
            Finding(field="cards", message=f"must be between 1 and 1024, got {request.cards}")
        )
    if request.memory < 0:
        findings.append(
            Finding(field="memory", message=f"cannot be negative, got {request.memory}")
        )
    return findings


def _check_inputs(request: JobRequest) -> list[Finding]:
    findings = []
    if not request.name.strip():
        findings.append(Finding(field="name", message="give the job a name"))
    if request.kind in (JobKind.FINETUNE, JobKind.EVALUATE, JobKind.QUANTIZE):
        if request.model_version is None:
            findings.append(Finding(field="model_version", message="choose a model version"))
        elif request.model_version.state != ModelState.READY:
            findings.append(
                Finding(
                    field="model_version",
                    message=f"{request.model_version} is {request.model_version.state}, not ready",
                )
            )
        if request.dataset_version is None:
            findings.append(Finding(field="dataset_version", message="choose a dataset version"))
        elif not request.dataset_version.artifact.usable:
            message = f"{request.dataset_version} has been deleted; choose one whose rows are here"
            findings.append(Finding(field="dataset_version", message=message))
    if request.kind in (JobKind.FINETUNE, JobKind.QUANTIZE) and not request.output_name:
        findings.append(
            Finding(field="output_name", message="name the model that the new version belongs to")
        )
    if request.kind is JobKind.EVALUATE and request.dataset_version is not None:
        findings += _check_split(request, request.dataset_version)
    if request.kind is JobKind.FINETUNE and request.dataset_version is not None:
        rows = request.dataset_version.statistics.get("rows_by_split", {})
        if not rows.get("train"):
            findings.append(
                Finding(
                    field="dataset_version",
                    message=f"{request.dataset_version} has no rows to train on",
                )
            )
    return findings


def inputs_gone(job: Job) -> tuple[Finding, ...]:
    """One finding for each input of the job that has been deleted since it was submitted."""
    model, dataset = job.model_version, job.dataset_version
    inputs = (
        ("model_version", str(model), model.artifact if model else None),
        ("dataset_version", str(dataset), dataset.artifact if dataset else None),
        ("code", str(job.code), job.code),
    )
    return tuple(
        Finding(
            field=field,
            message=f"{name} has been deleted; have it back on the storage page, or clone the job "
            "and choose another",
        )
        for field, name, artifact in inputs
        if artifact is not None and not artifact.usable
    )


def _check_split(request: JobRequest, dataset: DatasetVersion) -> list[Finding]:
    """An evaluation of no rows would fail only once it had its cards."""
    if request.engine not in registry.engine_names():
        return []
    spec = registry.engine(request.engine).normalise(Task(request.kind), request.spec)
    split = spec.get("split")
    rows = dataset.statistics.get("rows_by_split", {})
    # What is no text at all is the engine's to refuse.
    if not isinstance(split, str) or rows.get(split):
        return []
    filled = ", ".join(name for name, count in rows.items() if count)
    message = f"{dataset} has no rows in {split!r}; it has {filled}"
    return [Finding(field="split", message=message)]
