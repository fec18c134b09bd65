"""What fits on a chip's cards: the fewest of them, the longest context, the largest batch.

Memory only grows with context, concurrency and batch, so the largest that fits is found by halving.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from controlplane.domain.architectures import Architecture
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.resources import Bytes, format_bytes
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.jobs.parallelism import (
    ParallelPlan,
    card_counts,
    check,
    propose,
    ring_size,
)
from controlplane.domain.sizing.serving import Serving, ServingMemory, serving_memory
from controlplane.domain.sizing.training import Training, TrainingMemory, training_memory

#: No engine is asked for more.
LONGEST_CONTEXT = 10_485_760
MOST_CONCURRENT = 65_536
LARGEST_BATCH = 4_096
#: Of a card, what training may use: the rest is lost to fragments.
TRAINING_FRACTION = 0.95
_MOST_STAGES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The replicas that serve what was asked."""

    #: Of one replica.
    plan: ParallelPlan
    memory: ServingMemory
    #: Requests that one replica can hold at once.
    concurrency: int
    replicas: int

    @property
    def cards(self) -> int:
        return self.replicas * self.plan.cards


def usable(chip: Chip, fraction: float) -> Bytes | None:
    """Bytes of one card that may be used; None where the chip has no memory of its own."""
    return Bytes(round(chip.memory * fraction)) if chip.memory else None


def serving_fits(architecture: Architecture, wanted: Serving, *, chip: Chip) -> bool:
    limit = usable(chip, wanted.memory_fraction)
    return limit is None or serving_memory(architecture, wanted).total <= limit


def training_fits(architecture: Architecture, wanted: Training, *, chip: Chip) -> bool:
    limit = usable(chip, TRAINING_FRACTION)
    return limit is None or training_memory(architecture, wanted).total <= limit


def largest_context(architecture: Architecture, wanted: Serving, *, chip: Chip) -> int:
    """Tokens of a request that still fit with the given concurrency; 0 where not even one does.

    Never more than the model was made for, if it says.
    """
    most = architecture.context or LONGEST_CONTEXT
    return _largest(
        most, lambda tokens: serving_fits(architecture, replace(wanted, context=tokens), chip=chip)
    )


def largest_concurrency(architecture: Architecture, wanted: Serving, *, chip: Chip) -> int:
    """Requests of the given context that fit at once in one replica; 0 where not even one does."""
    return _largest(
        MOST_CONCURRENT,
        lambda many: serving_fits(architecture, replace(wanted, concurrency=many), chip=chip),
    )


def largest_batch(architecture: Architecture, wanted: Training, *, chip: Chip) -> int:
    """Rows at once on a card; 0 where not even one fits."""
    return _largest(
        LARGEST_BATCH,
        lambda rows: training_fits(architecture, replace(wanted, batch=rows), chip=chip),
    )


def serving_plan(
    architecture: Architecture, wanted: Serving, *, chip: Chip, most: int = 64
) -> ParallelPlan | None:
    """The plan on the fewest cards that holds the context and concurrency; None up to ``most`` cards.

    Tensor parallelism inside of a ring comes first, then pipeline stages.
    """
    for cards in card_counts(chip, most=most):
        for plan in _serving_candidates(cards, chip=chip):
            legal = not check(plan, cards=cards, architecture=architecture, chip=chip, serves=True)
            if legal and serving_fits(architecture, replace(wanted, plan=plan), chip=chip):
                return plan
    return None


def deployment(
    architecture: Architecture, wanted: Serving, *, chip: Chip, most: int = 64
) -> Deployment | None:
    """The fewest cards in all for the given concurrency; None where one request does not fit on ``most`` cards.

    Either one replica that holds all requests, or several small ones that share them.
    """
    found = []
    alone = serving_plan(architecture, replace(wanted, concurrency=1), chip=chip, most=most)
    together = serving_plan(architecture, wanted, chip=chip, most=most)
    for plan in {plan for plan in (alone, together) if plan is not None}:
        with_plan = replace(wanted, plan=plan)
        concurrency = largest_concurrency(architecture, with_plan, chip=chip)
        replicas = -(-wanted.concurrency // concurrency)
        held = min(concurrency, wanted.concurrency)
        found.append(
            Deployment(
                plan=plan,
                memory=serving_memory(architecture, replace(with_plan, concurrency=held)),
                concurrency=concurrency,
                replicas=replicas,
            )
        )
    return min(found, key=lambda each: (each.cards, each.replicas), default=None)


def training_plan(
    architecture: Architecture, wanted: Training, *, chip: Chip, cards: int
) -> ParallelPlan | None:
    """The first plan for so many cards that fits; None where none does."""
    return propose(
        cards=cards,
        architecture=architecture,
        chip=chip,
        fits=lambda plan: training_fits(architecture, replace(wanted, plan=plan), chip=chip),
    )


def too_large(memory: ServingMemory | TrainingMemory, *, limit: Bytes, chip: Chip) -> FieldFinding:
    """Says what does not fit, how large its largest part is, and what would be right."""
    names = ("weights", "optimizer", "activations", "cache")
    parts = {name: getattr(memory, name) for name in names if hasattr(memory, name)}
    worst = max(parts, key=lambda name: parts[name])
    why = _largest_part(worst, size=format_bytes(parts[worst]))
    return FieldFinding(
        field="chip",
        message=f"{format_bytes(memory.total)} do not fit into the {format_bytes(limit)} of a card of "
        f"{chip.label} that may be used: {why}",
    )


def _largest_part(name: str, *, size: str) -> str:
    match name:
        case "weights":
            return (
                f"the weights alone are {size}; take more cards, a chip with more memory, or fewer "
                "bits a weight"
            )
        case "optimizer":
            return (
                f"the optimizer's states alone are {size}; divide them with ZeRO, take more cards, "
                "or train an adapter"
            )
        case "activations":
            return f"activations alone are {size}; take a smaller batch or shorter rows, or recompute them"
        case _:
            return (
                f"the KV cache alone is {size}; take a shorter context, fewer requests at once, or "
                "more cards"
            )


def _serving_candidates(cards: int, *, chip: Chip) -> Iterator[ParallelPlan]:
    ring = ring_size(chip) or cards
    for stages in range(1, min(cards, _MOST_STAGES) + 1):
        if cards % stages == 0 and cards // stages <= ring:
            yield ParallelPlan(tensor=cards // stages, pipeline=stages)


def _largest(most: int, fits: Callable[[int], bool]) -> int:
    """The largest of 1 … ``most`` that fits, where everything below what fits does too; 0 for none."""
    if not fits(1):
        return 0
    low, high = 1, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
