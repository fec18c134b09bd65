"""Resource estimate of a fine-tune, from the model's configuration, dataset statistics and earlier jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Max, Min

from apps.accounts.models import User
from apps.jobs.models import Attempt
from apps.jobs.selectors.jobs import jobs_visible
from apps.jobs.selectors.progress import LONGEST_BY_DEFAULT, example_characters
from apps.models.models import DatasetVersion, ModelVersion
from apps.models.selectors.sizing import architecture_of
from apps.quotas import selectors as quotas
from apps.quotas.models import Queue
from controlplane.domain import sizing
from controlplane.domain.architectures import Architecture, ConfigRefused, generic_decoder
from controlplane.domain.common.accelerators import Chip, ChipKind
from controlplane.domain.common.resources import Bytes
from controlplane.domain.jobs.lifecycle import AttemptState, JobKind
from controlplane.domain.jobs.parallelism import SINGLE_CARD, ParallelPlan, parse_parallel_plan
from controlplane.domain.sizing import training_performance
from controlplane.ports import adapter_registry as ports

#: Earlier attempts that are used, the newest first.
MAX_RUNS = 10
#: Models of one architecture count as similar if their numbers of parameters are within this factor.
_SIMILAR_SIZE_FACTOR = 1.5
#: Tokens that a chat template adds to an example.
_TEMPLATE_TOKENS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetunePlan:
    """A fine-tune with a valid, complete spec."""

    version: ModelVersion
    dataset: DatasetVersion
    #: With every default filled in.
    spec: Mapping[str, Any]
    queue: Queue
    chip: str
    cards: int
    engine: str = "transformers"


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneEstimate:
    steps: int
    rows: int
    #: Of the card with the highest use.
    memory: sizing.TrainingMemory
    #: Why a typical architecture was assumed; empty if the model's own is known.
    assumed: tuple[str, ...]
    #: Bytes of one card; 0 for chips without memory of their own.
    card_memory: Bytes
    #: None if no similar attempt was measured on that chip.
    duration: training_performance.DurationEstimate | None
    place: quotas.QueuePosition

    @property
    def fits(self) -> bool:
        return self.card_memory == 0 or self.memory.total <= self.card_memory


def finetune_estimate(plan: FinetunePlan, *, user: User) -> FinetuneEstimate:
    """The estimate if the fine-tune were submitted now."""
    chip = ports.all_chips()[plan.chip]
    architecture, assumed = _model_architecture(plan.version)
    training = _measured_training(plan)
    return FinetuneEstimate(
        steps=training_performance.training_steps(training),
        rows=training.rows,
        memory=sizing.training_memory(architecture, _training_workload(plan, chip)),
        assumed=assumed,
        card_memory=chip.memory,
        duration=training_performance.training_duration(
            training,
            parameters=plan.version.parameters,
            row_characters=example_characters(plan.dataset.statistics, "p50"),
            runs=_measured_runs(plan, user=user),
        ),
        place=quotas.queue_position(queue=plan.queue, chips=(plan.chip,)),
    )


def _model_architecture(version: ModelVersion) -> tuple[Architecture, tuple[str, ...]]:
    """The model's architecture, or a typical one of its size with the reasons if it is not known."""
    try:
        return architecture_of(version), ()
    except ConfigRefused as refusal:
        reasons = tuple(finding.message for finding in refusal.findings)
        return generic_decoder(version.parameters), reasons


def _measured_training(plan: FinetunePlan) -> training_performance.TrainingRunSize:
    spec = plan.spec
    return training_performance.TrainingRunSize(
        rows=plan.dataset.statistics.get("rows_by_split", {}).get(spec["train_split"], 0),
        epochs=spec["epochs"],
        batch_size=spec["batch_size"],
        gradient_accumulation=spec["gradient_accumulation"],
        max_steps=spec["max_steps"],
    )


def _training_workload(plan: FinetunePlan, chip: Chip) -> sizing.TrainingWorkload:
    return sizing.finetune_workload(
        plan.spec,
        memory=ports.engine_by_name(plan.engine).profile().memory,
        parameters=plan.version.parameters,
        length=_longest_example_tokens(plan),
        plan=_parallel_plan_of_finetune(plan),
        accelerated=chip.kind is not ChipKind.CPU,
    )


def _parallel_plan_of_finetune(plan: FinetunePlan) -> ParallelPlan:
    architecture = plan.spec.get("parallel")
    return parse_parallel_plan(architecture, cards=plan.cards) if architecture else SINGLE_CARD


def _longest_example_tokens(plan: FinetunePlan) -> int:
    """Tokens of the longest example, which has at most as many tokens as characters."""
    context = plan.version.context_length or LONGEST_BY_DEFAULT
    limit = plan.spec["max_length"] or min(context, LONGEST_BY_DEFAULT)
    longest = example_characters(plan.dataset.statistics, "most")
    return min(limit, longest + _TEMPLATE_TOKENS) if longest else limit


def _measured_runs(plan: FinetunePlan, *, user: User) -> list[training_performance.MeasuredRun]:
    """Visible attempts of similar models with the same architecture and method on that chip."""
    size = plan.version.parameters
    attempts = (
        Attempt.objects.filter(
            state=AttemptState.SUCCEEDED,
            chip=plan.chip,
            continues=None,
            job__in=jobs_visible(user).order_by().values("pk"),
            job__kind=JobKind.FINETUNE,
            job__spec__method=plan.spec["method"],
            job__model_version__architecture=plan.version.architecture,
            job__model_version__parameters__range=(
                int(size / _SIMILAR_SIZE_FACTOR),
                int(size * _SIMILAR_SIZE_FACTOR),
            ),
            started_at__isnull=False,
            ended_at__isnull=False,
        )
        .select_related("job__model_version", "job__dataset_version")
        .annotate(
            first_step=Min("points__step"),
            last_step=Max("points__step"),
            first_at=Min("points__at"),
            last_at=Max("points__at"),
        )
        .order_by("-id")[:MAX_RUNS]
    )
    return [run for attempt in attempts if (run := _measured_run(attempt)) is not None]


def _measured_run(attempt: Any) -> training_performance.MeasuredRun | None:
    """The measured throughput of an attempt; None if it reported too little."""
    job = attempt.job
    if attempt.last_step is None or job.dataset_version is None or job.model_version is None:
        return None
    trained = attempt.last_step - attempt.first_step
    seconds = (attempt.last_at - attempt.first_at).total_seconds()
    whole = (attempt.ended_at - attempt.started_at).total_seconds()
    if trained <= 0 or seconds <= 0:
        # All points were reported at once: only the whole run can be measured.
        trained, seconds, overhead = attempt.last_step, whole, 0.0
    else:
        overhead = max(0.0, whole - seconds * attempt.last_step / trained)
    rows = trained * job.spec.get("batch_size", 1) * job.spec.get("gradient_accumulation", 1)
    return training_performance.MeasuredRun(
        parameters=job.model_version.parameters,
        rows=rows,
        row_characters=example_characters(job.dataset_version.statistics, "p50"),
        seconds=seconds,
        overhead_seconds=overhead,
    )
