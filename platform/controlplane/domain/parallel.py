"""How cards share one model: the plan, what is wrong with it, and one that suits.

::

    cards  =  tensor × pipeline × context × data        expert parts lie inside of data × context

*Tensor* cards share each matrix and talk at every layer, so they stay inside of one ring; *pipeline* stages
hold layers; *context* cards share a row's tokens; *data* copies see other rows, and *ZeRO* divides among them
what each would hold: 1 the optimizer's states, 2 also gradients, 3 also weights
(Rajbhandari et al. 2020, arXiv 1910.02054).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

from controlplane.domain.accelerators import Chip
from controlplane.domain.architectures import Architecture
from controlplane.domain.fields import Finding

MOST_CARDS = 65_536
#: Serving engines pad the vocabulary to a multiple of this (vLLM's ``DEFAULT_VOCAB_PADDING_SIZE``).
VOCABULARY_STEP = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How many cards share what."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    context: int = 1
    #: Of ``data × context`` cards that share the experts of a mixture.
    expert: int = 1
    zero_stage: int = 0
    #: Tensor cards also share what lies between their matrices.
    sequence: bool = False

    @property
    def cards(self) -> int:
        return self.tensor * self.pipeline * self.context * self.data

    @property
    def copies(self) -> int:
        """Cards that hold the same part of the model, among which ZeRO divides."""
        return self.data * self.context


#: One card that shares nothing.
ALONE = Plan()


def stage_share(layers: int, *, pipeline: int) -> float:
    """Of all layers, the share that the longest stage has."""
    return -(-layers // pipeline) / layers


def kv_heads_on_card(architecture: Architecture, *, tensor: int) -> int:
    """Heads of keys and values on one card; where there are fewer than cards, each is held several times."""
    return max(1, -(-architecture.kv_heads // tensor))


def padded_vocabulary(vocabulary: int, *, tensor: int) -> int:
    """Rows of the matrices for tokens, so that every card holds as many; as they are on one card."""
    if tensor == 1:
        return vocabulary
    step = VOCABULARY_STEP * tensor // gcd(VOCABULARY_STEP, tensor)
    return -(-vocabulary // step) * step


def check(
    plan: Plan,
    *,
    cards: int,
    architecture: Architecture | None = None,
    chip: Chip | None = None,
    serves: bool = False,
) -> tuple[Finding, ...]:
    """Everything that makes the plan impossible on so many cards; empty where it can run.

    Engines that serve take stages of unlike length; those that train need each to have as many layers.
    """
    found = list(_below_one(plan))
    if found:
        return tuple(found)
    found += _multiplies_out(plan, cards=cards)
    if architecture is not None:
        found += _divides(plan, architecture, serves=serves)
    if chip is not None:
        found += check_cards(cards, chip=chip)
        found += _inside_ring(plan, chip=chip)
    return tuple(found)


def read_plan(values: Mapping[str, Any], *, cards: int) -> Plan:
    """The plan of a spec's group ``parallel``: what it leaves open is 1, and ``data`` what is left over."""

    def number(name: str) -> int:
        return int(values.get(name) or 1)

    others = number("tensor") * number("pipeline") * number("context")
    data = values.get("data")
    return Plan(
        tensor=number("tensor"),
        pipeline=number("pipeline"),
        context=number("context"),
        data=int(data) if data else max(1, cards // others if others > 0 else 1),
        expert=number("expert"),
        zero_stage=int(values.get("zero_stage") or 0),
        sequence=values.get("sequence") == "on",
    )


def check_cards(cards: int, *, chip: Chip) -> tuple[Finding, ...]:
    """Whether the hardware gives out so many cards at once."""
    node = chip.cards_per_node
    if cards < 1 or cards > MOST_CARDS:
        return (Finding(field="cards", message=f"cards must be 1 to {MOST_CARDS}, got {cards}"),)
    on_node = cards
    if node and cards > node:
        if cards % node:
            right = ", ".join(
                str(each) for each in (cards - cards % node, -(-cards // node) * node)
            )
            return (
                Finding(
                    field="cards",
                    message=f"cards across nodes of {chip.label} must be whole nodes of {node}, got {cards}; "
                    f"right would be {right}",
                ),
            )
        on_node = node
    legal = chip.legal_request_sizes
    if legal and on_node not in legal:
        words = ", ".join(str(each) for each in legal)
        return (
            Finding(
                field="cards",
                message=f"{chip.label} gives out {words} cards of a node at once, got {on_node}",
            ),
        )
    if on_node > 1 and on_node % max(1, chip.aligned_to):
        return (
            Finding(
                field="cards",
                message=f"{chip.label} gives out 1 card or a multiple of {chip.aligned_to}, got {on_node}",
            ),
        )
    return ()


def ring_size(chip: Chip) -> int:
    """Cards of a usual node that share a direct link; 0 where nothing is known of its links."""
    return max((len(ring) for ring in chip.rings), default=0) or chip.cards_per_node


def propose(
    *,
    cards: int,
    architecture: Architecture,
    chip: Chip,
    fits: Callable[[Plan], bool],
) -> Plan | None:
    """The first legal plan for exactly so many cards that ``fits``; None where none does.

    What costs least comes first: copies alone, then ZeRO 1 to 3, with experts shared where there are any, then
    tensor parallelism inside of a ring, then pipeline stages.
    """
    experts = architecture.experts.count if architecture.experts else 1
    for plan in _candidates(cards=cards, chip=chip, experts=experts):
        if not check(plan, cards=cards, architecture=architecture, chip=chip) and fits(plan):
            return plan
    return None


def smallest(
    *, architecture: Architecture, chip: Chip, fits: Callable[[Plan], bool], most: int = 1024
) -> Plan | None:
    """The plan on the fewest cards that the hardware gives out and that ``fits``; None up to ``most``."""
    for cards in card_counts(chip, most=most):
        plan = propose(cards=cards, architecture=architecture, chip=chip, fits=fits)
        if plan is not None:
            return plan
    return None


def card_counts(chip: Chip, *, most: int) -> tuple[int, ...]:
    """Numbers of cards that the hardware gives out, ascending: every legal one of a node, then doubled nodes."""
    node = chip.cards_per_node or 8
    counts = [each for each in range(1, min(node, most) + 1) if not check_cards(each, chip=chip)]
    while node * 2 <= most:
        node *= 2
        counts.append(node)
    return tuple(counts)


def _candidates(*, cards: int, chip: Chip, experts: int) -> Iterator[Plan]:
    ring = min(ring_size(chip) or cards, cards)
    pipelines = [each for each in _divisors(cards) if each <= 64]
    for pipeline in pipelines:
        for tensor in [each for each in _divisors(cards // pipeline) if each <= ring]:
            data = cards // (pipeline * tensor)
            plan = Plan(tensor=tensor, pipeline=pipeline, data=data, sequence=tensor > 1)
            for stage in (0, 1, 2, 3) if data > 1 else (0,):
                # Gradients that are divided cannot be added up across the stages of a pipeline.
                if stage < 2 or pipeline == 1:
                    yield replace(plan, zero_stage=stage)
                    if gcd(experts, data) > 1:
                        yield replace(plan, zero_stage=stage, expert=gcd(experts, data))


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]


def _below_one(plan: Plan) -> Iterator[Finding]:
    for name in ("tensor", "pipeline", "data", "context", "expert"):
        value = getattr(plan, name)
        if not 1 <= value <= MOST_CARDS:
            yield Finding(
                field=f"parallel.{name}",
                message=f"parallel.{name} must be 1 to {MOST_CARDS}, got {value}",
            )
    if not 0 <= plan.zero_stage <= 3:
        yield Finding(
            field="parallel.zero_stage",
            message=f"parallel.zero_stage must be 0 to 3, got {plan.zero_stage}",
        )


def _multiplies_out(plan: Plan, *, cards: int) -> Iterator[Finding]:
    if plan.cards != cards:
        others = plan.tensor * plan.pipeline * plan.context
        right = (
            f"parallel.data of {cards // others} would be right"
            if cards % others == 0
            else f"{others} does not divide {cards}, so no parallel.data is right"
        )
        yield Finding(
            field="parallel",
            message=f"tensor {plan.tensor} × pipeline {plan.pipeline} × context {plan.context} × "
            f"data {plan.data} is {plan.cards}, but there are {cards} cards; {right}",
        )
    if plan.copies % plan.expert:
        yield Finding(
            field="parallel.expert",
            message=f"parallel.expert must divide data × context, which is {plan.copies}, got {plan.expert}",
        )
    if plan.zero_stage >= 2 and plan.pipeline > 1:
        yield Finding(
            field="parallel.zero_stage",
            message=f"parallel.zero_stage must be 0 or 1 with {plan.pipeline} pipeline stages, "
            f"got {plan.zero_stage}",
        )


def _divides(plan: Plan, architecture: Architecture, *, serves: bool) -> Iterator[Finding]:
    if architecture.heads % plan.tensor:
        yield Finding(
            field="parallel.tensor",
            message=f"parallel.tensor must divide the {architecture.heads} heads, got {plan.tensor}; "
            f"right would be {_words(_divisors(architecture.heads))}",
        )
    elif architecture.latent is None and (
        architecture.kv_heads % plan.tensor and plan.tensor % architecture.kv_heads
    ):
        yield Finding(
            field="parallel.tensor",
            message=f"parallel.tensor must divide the {architecture.kv_heads} heads of keys and "
            f"values or be a multiple of them, got {plan.tensor}",
        )
    if plan.pipeline > architecture.layers:
        yield Finding(
            field="parallel.pipeline",
            message=f"parallel.pipeline must be at most the {architecture.layers} layers, got {plan.pipeline}",
        )
    elif architecture.layers % plan.pipeline and not serves:
        yield Finding(
            field="parallel.pipeline",
            message=f"parallel.pipeline must divide the {architecture.layers} layers, got {plan.pipeline}; "
            f"right would be {_words(_divisors(architecture.layers))}",
        )
    experts = architecture.experts.count if architecture.experts else 0
    if plan.expert > 1 and not experts:
        yield Finding(
            field="parallel.expert",
            message=f"parallel.expert must be 1: {architecture.name} has no experts, got {plan.expert}",
        )
    elif experts and experts % plan.expert:
        yield Finding(
            field="parallel.expert",
            message=f"parallel.expert must divide the {experts} experts, got {plan.expert}; "
            f"right would be {_words(_divisors(experts))}",
        )


def _inside_ring(plan: Plan, *, chip: Chip) -> Iterator[Finding]:
    ring = ring_size(chip)
    if ring and plan.tensor > ring:
        yield Finding(
            field="parallel.tensor",
            message=f"parallel.tensor must be at most {ring}, the cards of {chip.label} that share a direct link, "
            f"got {plan.tensor}",
        )


def _words(numbers: list[int]) -> str:
    return ", ".join(str(each) for each in numbers)
