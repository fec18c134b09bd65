"""Job requests: their values, validation and resolution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.fleet import selectors as fleet
from apps.jobs.models import Job
from apps.jobs.services.resource_resolution import (
    ParallelPlanRequest,
    default_engine_for_task,
    expand_chip_names,
    parallel_plan_resolve,
)
from apps.jobs.services.secret_variables import secret_variables_check
from apps.models import selectors as registry_selectors
from apps.models.models import Artifact, DatasetVersion, ModelVersion
from apps.quotas.models import Queue
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.reasons import UNKNOWN, Reason
from controlplane.domain.common.spec_fields import (
    FieldFinding,
    FieldKind,
    FieldsRefused,
    device_variable_error,
    field_finding,
    variable_name_error,
)
from controlplane.domain.datasets.schemas import Schema
from controlplane.domain.jobs import parallelism
from controlplane.domain.jobs.lifecycle import JobKind
from controlplane.domain.jobs.retries import check_policy
from controlplane.domain.quantization.schemes import is_calibrated
from controlplane.domain.quotas.claims import MOST_CARDS
from controlplane.domain.registry.versions import ModelState
from controlplane.domain.specs import training
from controlplane.ports import adapter_registry
from controlplane.ports.engines import Engine, EngineTask, ModelFacts


class SpecRefused(FieldsRefused):
    """The request is invalid; it carries one finding for each error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    kind: JobKind
    name: str
    spec: Mapping[str, Any]
    queue: Queue
    #: Empty means the default for the kind and the first chip.
    engine: str = ""
    model_version: ModelVersion | None = None
    dataset_version: DatasetVersion | None = None
    code: Artifact | None = None
    output_name: str = ""
    #: Every team may use its output; for administrators of the company.
    output_shared: bool = False
    #: Acceptable chips, the preferred first; ``any`` or a kind of chip means those of the fleet.
    chips: tuple[str, ...] = ("cpu",)
    #: Total number.
    cards: int = 1
    #: Bytes for one replica; 0 means no limit.
    memory: int = 0
    priority: int = 0
    run_seconds: int | None = None
    #: Fields of ``controlplane.domain.jobs.retries``; those that are absent have their defaults.
    retry_policy: Mapping[str, Any] = field(default_factory=dict)
    #: Values of secret environment variables by name; never in the spec, and in no message.
    secret_variables: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not self.engine:
            engine = default_engine_for_task(EngineTask(self.kind), chips=self.chips)
            object.__setattr__(self, "engine", engine)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedRequest:
    """A request with defaults, chips and parallel plan filled in, as far as it is valid."""

    #: Its errors; empty if it can be submitted.
    findings: tuple[FieldFinding, ...]
    #: Acceptable chips, the preferred first.
    chips: tuple[Chip, ...] = ()
    #: With every default and the parallel plan filled in; None if it has findings.
    spec: Mapping[str, Any] | None = None


def merged_spec_of_request(request: JobRequest) -> dict[str, Any]:
    """The requested spec merged over the engine's recommendation for the model."""
    recommended = adapter_registry.engine_by_name(request.engine).recommended_values(
        EngineTask(request.kind), model=_model_facts(request)
    )
    if request.kind is JobKind.FINETUNE:
        return training.merge_recommended(recommended, request.spec)
    return {**recommended, **request.spec}


def job_request_check(request: JobRequest) -> tuple[FieldFinding, ...]:
    """Validate the request; no findings mean that it can be submitted."""
    return job_request_resolve(request).findings


def job_request_resolve(request: JobRequest) -> ResolvedRequest:
    """Resolve the request to what would be submitted, or to its findings."""
    findings = [*_check_inputs(request), *check_engine_supports_job(request)]
    if any(finding.field == "engine" for finding in findings):
        return ResolvedRequest(findings=tuple(findings))
    engine, task = adapter_registry.engine_by_name(request.engine), EngineTask(request.kind)
    chips, wrong = expand_chip_names(request.chips, engine=engine, task=task)
    findings += [
        *wrong,
        *_check_requested_resources(request, chips),
        *_check_container_support(engine, chips),
    ]
    spec = merged_spec_of_request(request)
    facts = _model_facts(request)
    unique = {
        finding.message: finding
        for chip in chips or (None,)
        for finding in engine.check(task, spec, chip=chip, model=facts)
    }
    findings += [
        *unique.values(),
        *_check_environment_variables(engine, task, spec),
        *secret_variables_check(request.secret_variables, spec=spec),
        *check_policy(request.retry_policy),
    ]
    if findings:
        return ResolvedRequest(findings=tuple(findings), chips=chips)
    complete = dict(engine.normalise(task, spec))
    # An engine may take some of the fields only.
    if "parallel" in complete and facts is not None:
        complete["parallel"], wrong = parallel_plan_resolve(
            ParallelPlanRequest(
                engine=engine, spec=complete, model=facts, chips=chips, cards=request.cards
            )
        )
        if wrong:
            return ResolvedRequest(findings=wrong, chips=chips)
    return ResolvedRequest(findings=(), chips=chips, spec=complete)


def _model_facts(request: JobRequest) -> ModelFacts | None:
    version = request.model_version
    return registry_selectors.engine_model_facts(version) if version else None


def check_engine_supports_job(request: JobRequest) -> Iterator[FieldFinding]:
    """Check that the engine exists and supports the kind of job."""
    names = adapter_registry.engine_names()
    if request.engine not in names:
        yield field_finding(
            "engine",
            "job.engine.not_found",
            "engine {engine} does not exist; use {engines}",
            engine=repr(request.engine),
            engines=", ".join(names),
        )
        return
    engine = adapter_registry.engine_by_name(request.engine)
    if EngineTask(request.kind) not in engine.tasks:
        does = ", ".join(sorted(engine.tasks))
        able = [
            name
            for name in names
            if EngineTask(request.kind) in adapter_registry.engine_by_name(name).tasks
        ]
        yield field_finding(
            "engine",
            "job.engine.kind_not_supported",
            "{engine} does not support {kind}; it supports {kinds}; use {engines}",
            engine=request.engine,
            kind=request.kind,
            kinds=does,
            engines=", ".join(able) or "another engine",
        )


def _check_requested_resources(
    request: JobRequest, chips: Sequence[Chip]
) -> Iterator[FieldFinding]:
    if not 1 <= request.cards <= MOST_CARDS:
        yield field_finding(
            "cards",
            "spec.value.out_of_range",
            "the value must be 1 to {limit}, got {value}",
            limit=MOST_CARDS,
            value=request.cards,
        )
    else:
        yield from parallelism.check_cards_on_nodes(chips, request.cards)
    if request.memory < 0:
        yield field_finding(
            "memory",
            "spec.value.negative",
            "the value must not be negative, got {value}",
            value=request.memory,
        )


def _check_environment_variables(
    engine: Engine, task: EngineTask, spec: Mapping[str, Any]
) -> list[FieldFinding]:
    """Refuse variables that select devices, as the chip plug-ins name them: a job must see only its own cards."""
    variables = [
        (each.name, name)
        for each in engine.fields(task)
        if each.kind is FieldKind.VARIABLES and isinstance(spec.get(each.name), Mapping)
        for name in spec[each.name]
    ]
    return [
        FieldFinding(field=at, message=device_variable_error(name, at=at))
        for at, name in variables
        # Invalid names are refused by the engine's own check.
        if adapter_registry.is_visible_devices_variable(name)
        and not variable_name_error(name, at=at)
    ]


def _check_container_support(engine: Engine, chips: Sequence[Chip]) -> list[FieldFinding]:
    """Refuse an engine that is available as an image only where clusters start no containers."""
    if engine.environment() is not None:
        return []
    without = [(chip, fleet.clusters_without_images(chip.name)) for chip in chips]
    return [
        field_finding(
            "engine",
            "job.engine.containers_not_supported",
            "{engine} requires a container image, and the clusters with {chip} do "
            "not run containers ({clusters}); choose another engine, or check the "
            "rendered launch",
            engine=engine.profile().title,
            chip=chip.label,
            clusters=", ".join(clusters),
        )
        for chip, clusters in without
        if clusters
    ]


def _check_inputs(request: JobRequest) -> Iterator[FieldFinding]:
    if not request.name.strip():
        yield field_finding("name", "job.name.missing", "enter a name for the job")
    if request.kind in (JobKind.FINETUNE, JobKind.EVALUATE, JobKind.QUANTIZE):
        if request.model_version is None:
            yield field_finding(
                "model_version", "job.model_version.missing", "choose a model version"
            )
        elif request.model_version.state != ModelState.READY:
            yield field_finding(
                "model_version",
                "model_version.state.not_ready",
                "{version} is {state}, not ready",
                version=str(request.model_version),
                state=request.model_version.state,
            )
        if request.dataset_version is None:
            yield field_finding(
                "dataset_version", "job.dataset_version.missing", "choose a dataset version"
            )
        elif not request.dataset_version.artifact.usable:
            yield field_finding(
                "dataset_version",
                "job.dataset_version.deleted",
                "{version} has been deleted; choose another dataset version",
                version=str(request.dataset_version),
            )
    if request.kind in (JobKind.FINETUNE, JobKind.QUANTIZE) and not request.output_name:
        yield field_finding(
            "output_name",
            "job.output_name.missing",
            "enter the name of the model that the new version belongs to",
        )
    measures = request.kind in (JobKind.EVALUATE, JobKind.QUANTIZE)
    if measures and request.dataset_version is not None:
        yield from _check_splits(request, request.dataset_version)
    if request.kind is JobKind.FINETUNE and request.dataset_version is not None:
        rows = request.dataset_version.statistics.get("rows_by_split", {})
        if not rows.get("train"):
            yield field_finding(
                "dataset_version",
                "job.dataset_version.no_training_examples",
                "{version} has no training examples",
                version=str(request.dataset_version),
            )
        yield from _check_dataset_schema(request, request.dataset_version)


def _check_dataset_schema(request: JobRequest, dataset: DatasetVersion) -> Iterator[FieldFinding]:
    """Check that the schema of the dataset suits the training objective."""
    objective = request.spec.get("objective", "sft")
    schema = dataset.statistics.get("schema", "")
    if objective == "dpo" and schema != Schema.PREFERENCE:
        yield field_finding(
            "dataset_version",
            "job.dataset_version.dpo_columns_missing",
            "{version} has examples of type {schema}; dpo requires examples with "
            "prompt, chosen and rejected",
            version=str(dataset),
            schema=schema or UNKNOWN,
        )
    elif objective in ("sft", "grpo") and schema == Schema.TEXT:
        yield field_finding(
            "dataset_version",
            "job.dataset_version.answers_missing",
            "{version} has plain text without answers; {objective} requires examples "
            "with a prompt and an answer",
            version=str(dataset),
            objective=objective,
        )


def deleted_input_findings(job: Job) -> tuple[FieldFinding, ...]:
    """One finding for each input of the job that has been deleted since submission."""
    model, dataset = job.model_version, job.dataset_version
    inputs = (
        ("model_version", str(model), model.artifact if model else None),
        ("dataset_version", str(dataset), dataset.artifact if dataset else None),
        ("code", str(job.code), job.code),
    )
    return tuple(
        FieldFinding(
            field=at,
            message=Reason(
                "job.input.removed",
                "the files of {version} have been removed; clone the job and choose another",
                version=name,
            )
            if artifact.removed_at is not None
            else Reason(
                "job.input.deleted",
                "{version} has been deleted; restore it on the storage page, or clone "
                "the job and choose another",
                version=name,
            ),
        )
        for at, name, artifact in inputs
        if artifact is not None and not artifact.usable
    )


def _check_splits(request: JobRequest, dataset: DatasetVersion) -> Iterator[FieldFinding]:
    """Check that the dataset has rows in the requested splits, before the job waits for cards."""
    if request.engine not in adapter_registry.engine_names():
        return
    engine, task = adapter_registry.engine_by_name(request.engine), EngineTask(request.kind)
    if task not in engine.tasks:
        return
    spec = engine.normalise(task, request.spec)
    names = ["split"]
    if is_calibrated(spec.get("scheme")):
        names.append("calibration_split")
    rows = dataset.statistics.get("rows_by_split", {})
    filled = ", ".join(name for name, count in rows.items() if count)
    for name in names:
        split = spec.get(name)
        # A value that is not a string is refused by the engine's own check.
        if isinstance(split, str) and not rows.get(split):
            yield field_finding(
                name,
                "job.dataset_version.split_empty",
                "{version} has no examples in the split {split}; it has {splits}",
                version=str(dataset),
                split=repr(split),
                splits=filled,
            )
