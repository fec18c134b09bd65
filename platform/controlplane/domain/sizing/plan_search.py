"""Search for what fits on a chip's cards: the fewest cards, the longest context, the largest batch.

Memory grows monotonically with context, concurrency and batch, so the largest value that fits is found by
bisection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from controlplane.domain.architectures import Architecture
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.resources import Bytes, format_bytes
from controlplane.domain.common.spec_fields import FieldFinding, field_finding
from controlplane.domain.jobs.parallelism import (
    ParallelPlan,
    allocatable_card_counts,
    check_plan,
    propose_plan,
    ring_size,
)
from controlplane.domain.sizing.serving import ServingMemory, ServingWorkload, serving_memory
from controlplane.domain.sizing.training import TrainingMemory, TrainingWorkload, training_memory

#: Upper limits of requests to an engine.
MAX_CONTEXT = 10_485_760
MAX_CONCURRENCY = 65_536
MAX_BATCH = 4_096
#: Share of a card that training can use; the rest is lost to fragmentation.
TRAINING_MEMORY_FRACTION = 0.95
_MAX_STAGES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaPlan:
    """The replicas that serve the requested concurrency."""

    #: Plan of one replica.
    plan: ParallelPlan
    memory: ServingMemory
    #: Concurrent requests of one replica.
    concurrency: int
    replicas: int

    @property
    def cards(self) -> int:
        return self.replicas * self.plan.cards


def usable_card_memory(chip: Chip, fraction: float) -> Bytes | None:
    """Usable bytes of one card; None if the chip has no memory of its own."""
    return Bytes(round(chip.memory * fraction)) if chip.memory else None


def serving_fits(architecture: Architecture, workload: ServingWorkload, *, chip: Chip) -> bool:
    limit = usable_card_memory(chip, workload.memory_fraction)
    return limit is None or serving_memory(architecture, workload).total <= limit


def fits_training_memory(
    architecture: Architecture, workload: TrainingWorkload, *, chip: Chip
) -> bool:
    limit = usable_card_memory(chip, TRAINING_MEMORY_FRACTION)
    return limit is None or training_memory(architecture, workload).total <= limit


def largest_context(architecture: Architecture, workload: ServingWorkload, *, chip: Chip) -> int:
    """Tokens per request that fit with the given concurrency; 0 if not even one does.

    Never more than the model's maximum positions, if they are known.
    """
    most = architecture.context or MAX_CONTEXT
    return _largest_fitting(
        most,
        lambda tokens: serving_fits(architecture, replace(workload, context=tokens), chip=chip),
    )


def largest_concurrency(
    architecture: Architecture, workload: ServingWorkload, *, chip: Chip
) -> int:
    """Concurrent requests of the given context that fit in one replica; 0 if not even one does."""
    return _largest_fitting(
        MAX_CONCURRENCY,
        lambda many: serving_fits(architecture, replace(workload, concurrency=many), chip=chip),
    )


def largest_batch(architecture: Architecture, workload: TrainingWorkload, *, chip: Chip) -> int:
    """Examples per card and step; 0 if not even one fits."""
    return _largest_fitting(
        MAX_BATCH,
        lambda rows: fits_training_memory(architecture, replace(workload, batch=rows), chip=chip),
    )


def serving_plan(
    architecture: Architecture, workload: ServingWorkload, *, chip: Chip, most: int = 64
) -> ParallelPlan | None:
    """The plan on the fewest cards that fits context and concurrency; None if none does on up to ``most`` cards.

    Tensor parallelism inside a ring comes first, then pipeline stages.
    """
    for cards in allocatable_card_counts(chip, most=most):
        for plan in _serving_candidates(cards, chip=chip):
            legal = not check_plan(
                plan, cards=cards, architecture=architecture, chip=chip, serves=True
            )
            if legal and serving_fits(architecture, replace(workload, plan=plan), chip=chip):
                return plan
    return None


def plan_replicas(
    architecture: Architecture, workload: ServingWorkload, *, chip: Chip, most: int = 64
) -> ReplicaPlan | None:
    """The fewest cards in total for the given concurrency; None if one request does not fit on ``most`` cards.

    Either one replica that holds all requests, or several small replicas that share them.
    """
    found = []
    alone = serving_plan(architecture, replace(workload, concurrency=1), chip=chip, most=most)
    together = serving_plan(architecture, workload, chip=chip, most=most)
    for plan in {plan for plan in (alone, together) if plan is not None}:
        with_plan = replace(workload, plan=plan)
        concurrency = largest_concurrency(architecture, with_plan, chip=chip)
        replicas = -(-workload.concurrency // concurrency)
        held = min(concurrency, workload.concurrency)
        found.append(
            ReplicaPlan(
                plan=plan,
                memory=serving_memory(architecture, replace(with_plan, concurrency=held)),
                concurrency=concurrency,
                replicas=replicas,
            )
        )
    return min(found, key=lambda each: (each.cards, each.replicas), default=None)


def training_plan(
    architecture: Architecture, workload: TrainingWorkload, *, chip: Chip, cards: int
) -> ParallelPlan | None:
    """The first plan for that number of cards that fits; None if none does."""
    return propose_plan(
        cards=cards,
        architecture=architecture,
        chip=chip,
        fits=lambda plan: fits_training_memory(
            architecture, replace(workload, plan=plan), chip=chip
        ),
    )


def insufficient_memory_finding(
    memory: ServingMemory | TrainingMemory, *, limit: Bytes, chip: Chip
) -> FieldFinding:
    """A finding with the total, its largest part, and what would reduce it."""
    names = ("weights", "optimizer", "activations", "cache")
    parts = {name: getattr(memory, name) for name in names if hasattr(memory, name)}
    worst = max(parts, key=lambda name: parts[name])
    cause = _largest_part(worst, size=format_bytes(parts[worst]))
    return field_finding(
        "chip",
        "sizing.memory.insufficient",
        "the required memory of {required} exceeds the {usable} usable on a card "
        "of {chip}: {reason}",
        required=format_bytes(memory.total),
        usable=format_bytes(limit),
        chip=chip.label,
        reason=cause,
    )


def _largest_part(name: str, *, size: str) -> str:
    match name:
        case "weights":
            return Reason(
                "sizing.memory.weights",
                "the weights alone require {size}; use more cards, a chip with more "
                "memory, or fewer bits per weight",
                size=size,
            )
        case "optimizer":
            return Reason(
                "sizing.memory.optimizer",
                "the optimizer states alone require {size}; partition them with ZeRO, "
                "use more cards, or train an adapter",
                size=size,
            )
        case "activations":
            return Reason(
                "sizing.memory.activations",
                "the activations alone require {size}; use a smaller batch, shorter "
                "examples, or activation recomputation",
                size=size,
            )
        case _:
            return Reason(
                "sizing.memory.kv_cache",
                "the KV cache alone requires {size}; use a shorter context, fewer "
                "concurrent requests, or more cards",
                size=size,
            )


def _serving_candidates(cards: int, *, chip: Chip) -> Iterator[ParallelPlan]:
    ring = ring_size(chip) or cards
    for stages in range(1, min(cards, _MAX_STAGES) + 1):
        if cards % stages == 0 and cards // stages <= ring:
            yield ParallelPlan(tensor=cards // stages, pipeline=stages)


def _largest_fitting(most: int, fits: Callable[[int], bool]) -> int:
    """The largest of 1 … ``most`` that fits, assuming monotonicity; 0 if none does."""
    if not fits(1):
        return 0
    low, high = 1, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
