"""How much of its cards' arithmetic a run uses, and how well more cards paid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apps.jobs.models import Attempt, Job
from apps.models.selectors.sizing import architecture_of
from controlplane.domain.accelerators import Chip, ChipKind, Dtype
from controlplane.domain.architectures import ConfigRefused
from controlplane.domain.claims import GangShape
from controlplane.domain.jobs import JobKind
from controlplane.domain.sizing import adapter_parameters
from controlplane.domain.throughput import (
    Speed,
    Utilization,
    scaling_efficiency,
    training_operations,
    utilization,
)
from controlplane.ports import registry as ports

#: Where a spec does not say, rows are cut off here.
_LONGEST_BY_DEFAULT = 2048


def utilization_of(attempt: Attempt) -> Utilization | None:
    """By the newest report; None unless the model's build, its tokens a second and the chip's peak rate are known.

    Rows count as no longer than their characters, so that the attention of short ones is not overrated.
    """
    job = attempt.job
    speed = _speed(attempt)
    chip = ports.chip_called(attempt.chip) if attempt.chip else None
    # What is at hand is asked first: most runs say too little, and need no query to be told apart.
    if job.kind != JobKind.FINETUNE or chip is None or not chip.peak_rates or speed is None:
        return None
    if job.model_version is None:
        return None
    try:
        built = architecture_of(job.model_version)
    except ConfigRefused:
        return None
    adapted = job.spec.get("method", "full") != "full"
    trained = adapter_parameters(built, rank=job.spec["lora"]["rank"]) if adapted else None
    return utilization(
        tokens_per_second=speed,
        token_operations=training_operations(built, length=_length(job), trained=trained),
        chip=chip,
        dtype=_dtype(job.spec, chip),
        cards=GangShape.from_json(job.shape).cards,
    )


def scaling_of(jobs: Sequence[Job], attempts: Mapping[int, Attempt]) -> tuple[float | None, ...]:
    """Of each run, its efficiency against the one on the fewest cards; None where it told no speed.

    Empty unless runs of one model on one chip differ in their cards.
    """
    speeds = [_speed_of(job, attempts.get(job.pk)) for job in jobs]
    known = [speed for speed in speeds if speed is not None]
    alike = {(job.model_version_id, attempts[job.pk].chip) for job in jobs if job.pk in attempts}
    if len(alike) != 1 or len({speed.cards for speed in known}) < 2:
        return ()
    base = min(known, key=lambda speed: speed.cards)
    return tuple(
        None if speed is None else round(scaling_efficiency(base, speed), 4) for speed in speeds
    )


def _speed_of(job: Job, attempt: Attempt | None) -> Speed | None:
    speed = _speed(attempt) if attempt is not None else None
    if speed is None:
        return None
    return Speed(cards=GangShape.from_json(job.shape).cards, tokens_per_second=speed)


def _speed(attempt: Attempt) -> float | None:
    """Tokens a second of all cards together, as it reported last."""
    told = (attempt.progress or {}).get("tokens_per_second")
    usable = isinstance(told, (int, float)) and not isinstance(told, bool) and told > 0
    return float(told) if usable and told is not None else None


def _length(job: Job) -> int:
    """Tokens of a usual row, at most."""
    context = job.model_version.context_length if job.model_version else 0
    limit = job.spec.get("max_length") or min(context or _LONGEST_BY_DEFAULT, _LONGEST_BY_DEFAULT)
    statistics = job.dataset_version.statistics if job.dataset_version else {}
    parts = ("prompt_characters", "answer_characters")
    usual = sum(int(statistics.get(part, {}).get("p50", 0)) for part in parts)
    return min(limit, usual) if usual else int(limit)


def _dtype(spec: Mapping[str, Any], chip: Chip) -> Dtype:
    """In what it computes; a chip of old knows no bfloat16."""
    asked = spec.get("precision", "auto")
    if asked != "auto":
        return Dtype(asked)
    if chip.kind is ChipKind.CPU:
        return Dtype.FLOAT32
    return Dtype.BFLOAT16 if Dtype.BFLOAT16 in chip.peak_rates else Dtype.FLOAT16
