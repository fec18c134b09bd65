"""What a fine-tune would take, from the model's configuration, the dataset's figures and earlier runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Max, Min

from apps.accounts.models import User
from apps.jobs.models import Attempt
from apps.jobs.selectors.jobs import jobs_visible
from apps.models.models import DatasetVersion, ModelVersion
from apps.models.selectors.sizing import architecture_of
from apps.quotas import selectors as quotas
from apps.quotas.models import Queue
from controlplane.domain import estimates, sizing
from controlplane.domain.accelerators import Chip, ChipKind
from controlplane.domain.architectures import Architecture, ConfigRefused, usual
from controlplane.domain.jobs import AttemptState, JobKind
from controlplane.domain.parallel import ALONE, read_plan
from controlplane.domain.parallel import Plan as ParallelPlan
from controlplane.domain.resources import Bytes
from controlplane.ports import registry as ports

#: Earlier runs that are looked at, the newest first.
MOST_RUNS = 10
#: Models within this factor of each other's parameters are of one family, if they are built alike.
_ALIKE = 1.5
#: Where a spec does not say, the trainer cuts rows here.
_LONGEST_BY_DEFAULT = 2048
#: Above so many parameters the trainer recomputes activations on accelerators.
_RECOMPUTED_ABOVE = 1_000_000_000
#: Tokens that a chat template puts around a row.
_TEMPLATE_TOKENS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A fine-tune whose fields are complete and right."""

    version: ModelVersion
    dataset: DatasetVersion
    #: With every default written out.
    spec: Mapping[str, Any]
    queue: Queue
    chip: str
    cards: int
    engine: str = "transformers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    steps: int
    rows: int
    #: Of the fullest card.
    memory: sizing.TrainingMemory
    #: Why a usual build was assumed instead of the model's own; empty where that is known.
    assumed: tuple[str, ...]
    #: Bytes of one card; 0 where the chip has no memory of its own.
    card_memory: Bytes
    #: None where no run of the kind was ever measured on that chip.
    duration: estimates.Duration | None
    place: quotas.Place

    @property
    def fits(self) -> bool:
        return self.card_memory == 0 or self.memory.total <= self.card_memory


def estimate_of(plan: Plan, *, user: User) -> Estimate:
    """What it would take if it were submitted now."""
    chip = ports.chips()[plan.chip]
    architecture, assumed = _architecture(plan.version)
    training = _training(plan)
    return Estimate(
        steps=estimates.steps(training),
        rows=training.rows,
        memory=sizing.training_memory(architecture, _wanted(plan, chip)),
        assumed=assumed,
        card_memory=chip.memory,
        duration=estimates.duration(
            training,
            parameters=plan.version.parameters,
            row_characters=_row_characters(plan.dataset.statistics),
            runs=_runs(plan, user=user),
        ),
        place=quotas.place_of(queue=plan.queue, chips=(plan.chip,)),
    )


def _architecture(version: ModelVersion) -> tuple[Architecture, tuple[str, ...]]:
    """The model's own build; a usual one of its size, and why, where its configuration does not say."""
    try:
        return architecture_of(version), ()
    except ConfigRefused as refusal:
        reasons = tuple(finding.message for finding in refusal.findings)
        return usual(version.parameters), reasons


def _training(plan: Plan) -> estimates.Training:
    spec = plan.spec
    return estimates.Training(
        rows=plan.dataset.statistics.get("rows_by_split", {}).get(spec["train_split"], 0),
        epochs=spec["epochs"],
        batch_size=spec["batch_size"],
        gradient_accumulation=spec["gradient_accumulation"],
        max_steps=spec["max_steps"],
    )


def _wanted(plan: Plan, chip: Chip) -> sizing.Training:
    spec = plan.spec
    accelerated = chip.kind is not ChipKind.CPU
    half = spec["precision"] in ("bfloat16", "float16") or (
        spec["precision"] == "auto" and accelerated
    )
    traits = ports.engine(plan.engine).profile().memory
    asked = spec.get("recompute", "auto")
    large = accelerated and plan.version.parameters > _RECOMPUTED_ABOVE
    return sizing.Training(
        batch=spec["batch_size"],
        length=_length(plan),
        accumulation=spec["gradient_accumulation"],
        mixed=traits.half if half else sizing.Mixed.FLOAT32,
        adapter=_adapter(spec, half=half),
        recompute=large if asked == "auto" else asked == "on",
        drops_gradients=traits.drops_gradients,
        reference=spec.get("objective") == "dpo" and spec["method"] == "full",
        plan=_parallel(plan),
    )


def _adapter(spec: Mapping[str, Any], *, half: bool) -> sizing.Adapter | None:
    if spec["method"] == "full":
        return None
    if spec["method"] == "qlora":
        settings = spec["qlora"]
        double = settings["double_quantization"] == "on"
        base = ("nf4-double" if double else "nf4") if settings["bits"] == 4 else "int8"
    else:
        base = "bfloat16" if half else "float32"
    return sizing.Adapter(rank=spec["lora"]["rank"], base=sizing.scheme_called(base))


def _parallel(plan: Plan) -> ParallelPlan:
    values = plan.spec.get("parallel")
    return read_plan(values, cards=plan.cards) if values else ALONE


def _length(plan: Plan) -> int:
    """Tokens of the longest row. No tokenizer makes more tokens than there are characters."""
    context = plan.version.context_length or _LONGEST_BY_DEFAULT
    limit = plan.spec["max_length"] or min(context, _LONGEST_BY_DEFAULT)
    longest = _characters(plan.dataset.statistics, "most")
    return min(limit, longest + _TEMPLATE_TOKENS) if longest else limit


def _row_characters(statistics: Mapping[str, Any]) -> int:
    return _characters(statistics, "p50")


def _characters(statistics: Mapping[str, Any], which: str) -> int:
    """Of a whole row: its prompt and its answer."""
    parts = ("prompt_characters", "answer_characters")
    return sum(int(statistics.get(part, {}).get(which, 0)) for part in parts)


def _runs(plan: Plan, *, user: User) -> list[estimates.MeasuredRun]:
    """Runs that they may see: the same architecture and about as large, by the same method, on that chip."""
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
            job__model_version__parameters__range=(int(size / _ALIKE), int(size * _ALIKE)),
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
        .order_by("-id")[:MOST_RUNS]
    )
    return [run for attempt in attempts if (run := _measured(attempt)) is not None]


def _measured(attempt: Any) -> estimates.MeasuredRun | None:
    """None where it reported too little to tell its speed."""
    job = attempt.job
    if attempt.last_step is None or job.dataset_version is None or job.model_version is None:
        return None
    trained = attempt.last_step - attempt.first_step
    seconds = (attempt.last_at - attempt.first_at).total_seconds()
    whole = (attempt.ended_at - attempt.started_at).total_seconds()
    if trained <= 0 or seconds <= 0:
        # Everything was reported at once: only the whole run can be measured.
        trained, seconds, overhead = attempt.last_step, whole, 0.0
    else:
        overhead = max(0.0, whole - seconds * attempt.last_step / trained)
    rows = trained * job.spec.get("batch_size", 1) * job.spec.get("gradient_accumulation", 1)
    return estimates.MeasuredRun(
        parameters=job.model_version.parameters,
        rows=rows,
        row_characters=_row_characters(job.dataset_version.statistics),
        seconds=seconds,
        overhead_seconds=overhead,
    )
