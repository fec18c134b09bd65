"""What a fine-tune would take, from the model's configuration, the dataset's figures and earlier runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.db.models import Max, Min

from apps.accounts.models import User
from apps.jobs.models import Attempt
from apps.jobs.selectors.jobs import jobs_visible
from apps.models import selectors as registry
from apps.models.models import DatasetVersion, ModelVersion
from apps.quotas import selectors as quotas
from apps.quotas.models import Queue
from controlplane.domain import estimates
from controlplane.domain.accelerators import Chip, ChipKind
from controlplane.domain.jobs import AttemptState, JobKind
from controlplane.domain.resources import Bytes
from controlplane.ports import registry as ports
from controlplane.ports.artifacts import ArtifactError

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
#: A configuration that is larger is none.
_LARGEST_CONFIG = 1 << 20


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    steps: int
    rows: int
    memory: estimates.Memory
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
    network = _network(plan.version)
    training = _training(plan, chip)
    return Estimate(
        steps=estimates.steps(training),
        rows=training.rows,
        memory=estimates.memory(network, training),
        card_memory=chip.memory,
        duration=estimates.duration(
            network,
            training,
            row_characters=_row_characters(plan.dataset.statistics),
            runs=_runs(plan, user=user),
        ),
        place=quotas.place_of(queue=plan.queue, chips=(plan.chip,)),
    )


def _training(plan: Plan, chip: Chip) -> estimates.Training:
    spec = plan.spec
    accelerated = chip.kind is not ChipKind.CPU
    half = spec["precision"] == "bfloat16" or (spec["precision"] == "auto" and accelerated)
    return estimates.Training(
        rows=plan.dataset.statistics.get("rows_by_split", {}).get(spec["train_split"], 0),
        epochs=spec["epochs"],
        batch_size=spec["batch_size"],
        gradient_accumulation=spec["gradient_accumulation"],
        max_steps=spec["max_steps"],
        length=_length(plan),
        rank=spec["lora"]["rank"] if spec["method"] == "lora" else None,
        value_bytes=2 if half else 4,
        recomputes=accelerated and plan.version.parameters > _RECOMPUTED_ABOVE,
    )


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


def _network(version: ModelVersion) -> estimates.Network:
    """From its ``config.json``; guessed from its size where that does not say."""
    guess = estimates.Network.guessed(version.parameters)
    digest = version.artifact.tree.get("config.json") if version.artifact else None
    config = _config(digest) if digest else {}
    hidden = _whole(config, "hidden_size", "n_embd", default=guess.hidden)
    return estimates.Network(
        parameters=version.parameters,
        hidden=hidden,
        layers=_whole(config, "num_hidden_layers", "n_layer", default=guess.layers),
        intermediate=_whole(config, "intermediate_size", "n_inner", default=4 * hidden),
        vocabulary=_whole(config, "vocab_size", default=guess.vocabulary),
    )


@lru_cache(maxsize=256)
def _config(digest: str) -> Mapping[str, Any]:
    """What lies under a digest never changes, so it is read once."""
    store = registry.artifact_store()
    try:
        with store.open(digest) as file:
            config = json.loads(file.read(_LARGEST_CONFIG))
    except (ArtifactError, ValueError):
        return {}
    if not isinstance(config, dict):
        return {}
    nested = config.get("text_config")
    return nested if isinstance(nested, dict) else config


def _whole(config: Mapping[str, Any], *names: str, default: int) -> int:
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return default


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
