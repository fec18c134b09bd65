"""Parallel plans: how cards share one model, validation of a plan, and search for one that fits.

::

    cards  =  tensor × pipeline × context × data        expert parallelism is within data × context

*Tensor* parallel cards share each matrix and communicate at every layer, so they stay within one ring; *pipeline*
stages hold layers; *context* parallel cards share the tokens of an example; *data* parallel copies see different
examples, and *ZeRO* shards among them what each would hold: 1 the optimizer's states, 2 also gradients, 3 also
weights (Rajbhandari et al. 2020, arXiv 1910.02054).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

from controlplane.domain.architectures import Architecture
from controlplane.domain.common.accelerators import Chip, check_cards_per_node
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import FieldFinding, field_finding

MOST_CARDS = 65_536
#: Serving engines pad the vocabulary to a multiple of this (vLLM's ``DEFAULT_VOCAB_PADDING_SIZE``).
VOCABULARY_STEP = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelPlan:
    """The degree of each kind of parallelism."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    context: int = 1
    #: How many of the ``data × context`` cards share the experts of a mixture.
    expert: int = 1
    zero_stage: int = 0
    #: Tensor parallel cards also share the activations between their matrices.
    sequence: bool = False

    @property
    def cards(self) -> int:
        return self.tensor * self.pipeline * self.context * self.data

    @property
    def copies(self) -> int:
        """Number of cards with the same part of the model, among which ZeRO shards."""
        return self.data * self.context


#: One card without parallelism.
SINGLE_CARD = ParallelPlan()


def stage_share(layers: int, *, pipeline: int) -> float:
    """The share of all layers that the longest stage has."""
    return -(-layers // pipeline) / layers


def kv_heads_on_card(architecture: Architecture, *, tensor: int) -> int:
    """Key-value heads on one card; if there are fewer heads than cards, they are replicated."""
    return max(1, -(-architecture.kv_heads // tensor))


def padded_vocabulary(vocabulary: int, *, tensor: int) -> int:
    """Vocabulary size, padded so that every card holds equally many rows; unpadded on one card."""
    if tensor == 1:
        return vocabulary
    step = VOCABULARY_STEP * tensor // gcd(VOCABULARY_STEP, tensor)
    return -(-vocabulary // step) * step


def check_plan(
    plan: ParallelPlan,
    *,
    cards: int,
    architecture: Architecture | None = None,
    chip: Chip | None = None,
    serves: bool = False,
) -> tuple[FieldFinding, ...]:
    """Validate a plan for that number of cards; no findings mean that it can run.

    Serving engines support stages of different length; training engines need equally many layers in each.
    """
    findings = list(_check_parallel_degrees(plan))
    if findings:
        return tuple(findings)
    findings += _check_degree_product(plan, cards=cards)
    if architecture is not None:
        findings += _check_divisibility(plan, architecture, serves=serves)
    if chip is not None:
        findings += check_card_count(cards, chip=chip)
        findings += _check_tensor_within_ring(plan, chip=chip)
    return tuple(findings)


def parse_parallel_plan(values: Mapping[str, Any], *, cards: int) -> ParallelPlan:
    """The plan of a spec's group ``parallel``: empty fields are 1, an empty ``data`` uses the other cards."""

    def number(name: str) -> int:
        return int(values.get(name) or 1)

    others = number("tensor") * number("pipeline") * number("context")
    data = values.get("data")
    return ParallelPlan(
        tensor=number("tensor"),
        pipeline=number("pipeline"),
        context=number("context"),
        data=int(data) if data else max(1, cards // others if others > 0 else 1),
        expert=number("expert"),
        zero_stage=int(values.get("zero_stage") or 0),
        sequence=values.get("sequence") == "on",
    )


def check_card_count(cards: int, *, chip: Chip) -> tuple[FieldFinding, ...]:
    """Validate a number of cards against the allocation sizes of the hardware."""
    node = chip.cards_per_node
    if cards < 1 or cards > MOST_CARDS:
        return (
            field_finding(
                "cards",
                "parallelism.cards.out_of_range",
                "cards must be 1 to {limit}, got {cards}",
                limit=MOST_CARDS,
                cards=cards,
            ),
        )
    on_node = cards
    if node and cards > node:
        if cards % node:
            right = ", ".join(
                str(each) for each in (cards - cards % node, -(-cards // node) * node)
            )
            return (
                field_finding(
                    "cards",
                    "parallelism.cards.not_whole_nodes",
                    "cards of {chip} on several nodes must be a multiple of {node_cards}, "
                    "the cards of a node, got {cards}; valid values: {valid}",
                    chip=chip.label,
                    node_cards=node,
                    cards=cards,
                    valid=right,
                ),
            )
        on_node = node
    legal = chip.legal_request_sizes
    if legal and on_node not in legal:
        sizes = ", ".join(str(each) for each in legal)
        return (
            field_finding(
                "cards",
                "parallelism.cards.unsupported_size",
                "{chip} supports requests of {sizes} cards on a node, got {cards}",
                chip=chip.label,
                sizes=sizes,
                cards=on_node,
            ),
        )
    if on_node > 1 and on_node % max(1, chip.aligned_to):
        return (
            field_finding(
                "cards",
                "parallelism.cards.not_aligned",
                "{chip} supports requests of 1 card or a multiple of {multiple}, got {cards}",
                chip=chip.label,
                multiple=chip.aligned_to,
                cards=on_node,
            ),
        )
    return ()


def node_and_card_counts(chips: Sequence[Chip], cards: int) -> tuple[int, int]:
    """The number of nodes and the cards of each for a total of ``cards``; several nodes are used whole."""
    node = min((chip.cards_per_node for chip in chips if chip.cards_per_node), default=0)
    if not node or cards <= node or cards % node:
        return 1, cards
    return cards // node, node


def check_cards_on_nodes(chips: Sequence[Chip], cards: int) -> tuple[FieldFinding, ...]:
    """Findings if nodes of one of the chips do not give out that many cards in total."""
    _, each = node_and_card_counts(chips, cards)
    beyond = (chip for chip in chips if 0 < chip.cards_per_node < each)
    if found := [finding for chip in beyond for finding in check_card_count(each, chip=chip)]:
        return tuple(found)
    wrong = (check_cards_per_node(chip, each) for chip in chips)
    return tuple(finding for finding in wrong if finding)


def ring_size(chip: Chip) -> int:
    """Cards of a typical node with direct links to each other; 0 if unknown."""
    return max((len(ring) for ring in chip.rings), default=0) or chip.cards_per_node


def propose_plan(
    *,
    cards: int,
    architecture: Architecture,
    chip: Chip,
    fits: Callable[[ParallelPlan], bool],
) -> ParallelPlan | None:
    """The first legal plan for exactly that number of cards that ``fits``; None if there is none.

    Cheap plans come first: data parallelism only, then ZeRO 1 to 3, with expert parallelism for mixtures, then
    tensor parallelism within a ring, then pipeline stages.
    """
    experts = architecture.experts.count if architecture.experts else 1
    for plan in _candidate_plans(cards=cards, chip=chip, experts=experts):
        if not check_plan(plan, cards=cards, architecture=architecture, chip=chip) and fits(plan):
            return plan
    return None


def smallest_plan(
    *,
    architecture: Architecture,
    chip: Chip,
    fits: Callable[[ParallelPlan], bool],
    most: int = 1024,
) -> ParallelPlan | None:
    """The plan with the fewest allocatable cards, up to ``most``, that ``fits``; None if there is none."""
    for cards in allocatable_card_counts(chip, most=most):
        plan = propose_plan(cards=cards, architecture=architecture, chip=chip, fits=fits)
        if plan is not None:
            return plan
    return None


def allocatable_card_counts(chip: Chip, *, most: int) -> tuple[int, ...]:
    """Allocatable numbers of cards, ascending: every legal one of a node, then nodes by powers of two."""
    node = chip.cards_per_node or 8
    counts = [
        each for each in range(1, min(node, most) + 1) if not check_card_count(each, chip=chip)
    ]
    while node * 2 <= most:
        node *= 2
        counts.append(node)
    return tuple(counts)


def _candidate_plans(*, cards: int, chip: Chip, experts: int) -> Iterator[ParallelPlan]:
    ring = min(ring_size(chip) or cards, cards)
    pipelines = [each for each in _divisors(cards) if each <= 64]
    for pipeline in pipelines:
        for tensor in [each for each in _divisors(cards // pipeline) if each <= ring]:
            data = cards // (pipeline * tensor)
            plan = ParallelPlan(tensor=tensor, pipeline=pipeline, data=data, sequence=tensor > 1)
            for stage in (0, 1, 2, 3) if data > 1 else (0,):
                # Sharded gradients cannot be accumulated across pipeline stages.
                if stage < 2 or pipeline == 1:
                    yield replace(plan, zero_stage=stage)
                    if gcd(experts, data) > 1:
                        yield replace(plan, zero_stage=stage, expert=gcd(experts, data))


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]


def _check_parallel_degrees(plan: ParallelPlan) -> Iterator[FieldFinding]:
    for name in ("tensor", "pipeline", "data", "context", "expert"):
        value = getattr(plan, name)
        if not 1 <= value <= MOST_CARDS:
            yield field_finding(
                f"parallel.{name}",
                "parallelism.value.out_of_range",
                "parallel.{name} must be 1 to {limit}, got {value}",
                name=name,
                limit=MOST_CARDS,
                value=value,
            )
    if not 0 <= plan.zero_stage <= 3:
        yield field_finding(
            "parallel.zero_stage",
            "parallelism.zero_stage.out_of_range",
            "parallel.zero_stage must be 0 to 3, got {value}",
            value=plan.zero_stage,
        )


def _check_degree_product(plan: ParallelPlan, *, cards: int) -> Iterator[FieldFinding]:
    if plan.cards != cards:
        others = plan.tensor * plan.pipeline * plan.context
        if cards % others == 0:
            remedy = Reason(
                "parallelism.data.valid_value",
                "parallel.data must be {value}",
                value=cards // others,
            )
        else:
            remedy = Reason(
                "parallelism.data.no_valid_value",
                "{product} does not divide {cards}, so parallel.data has no valid value",
                product=others,
                cards=cards,
            )
        yield field_finding(
            "parallel",
            "parallelism.product.mismatch",
            "tensor {tensor} × pipeline {pipeline} × context {context} × data {data} "
            "is {product}, but the number of cards is {cards}; {remedy}",
            tensor=plan.tensor,
            pipeline=plan.pipeline,
            context=plan.context,
            data=plan.data,
            product=plan.cards,
            cards=cards,
            remedy=remedy,
        )
    if plan.copies % plan.expert:
        yield field_finding(
            "parallel.expert",
            "parallelism.expert.not_a_divisor_of_copies",
            "parallel.expert must divide data × context, which is {copies}, got {expert}",
            copies=plan.copies,
            expert=plan.expert,
        )
    if plan.zero_stage >= 2 and plan.pipeline > 1:
        yield field_finding(
            "parallel.zero_stage",
            "parallelism.zero_stage.pipeline_conflict",
            "parallel.zero_stage must be 0 or 1 with {pipeline} pipeline stages, got {zero_stage}",
            pipeline=plan.pipeline,
            zero_stage=plan.zero_stage,
        )


def _check_divisibility(
    plan: ParallelPlan, architecture: Architecture, *, serves: bool
) -> Iterator[FieldFinding]:
    if architecture.heads % plan.tensor:
        yield field_finding(
            "parallel.tensor",
            "parallelism.tensor.not_a_divisor_of_heads",
            "parallel.tensor must divide the {heads} heads, got {tensor}; valid values: {valid}",
            heads=architecture.heads,
            tensor=plan.tensor,
            valid=_join_numbers(_divisors(architecture.heads)),
        )
    elif architecture.latent is None and (
        architecture.kv_heads % plan.tensor and plan.tensor % architecture.kv_heads
    ):
        yield field_finding(
            "parallel.tensor",
            "parallelism.tensor.kv_heads_mismatch",
            "parallel.tensor must divide the {kv_heads} KV heads or be a multiple of "
            "them, got {tensor}",
            kv_heads=architecture.kv_heads,
            tensor=plan.tensor,
        )
    if plan.pipeline > architecture.layers:
        yield field_finding(
            "parallel.pipeline",
            "parallelism.pipeline.too_large",
            "parallel.pipeline must be at most the number of layers, {layers}, got {pipeline}",
            layers=architecture.layers,
            pipeline=plan.pipeline,
        )
    elif architecture.layers % plan.pipeline and not serves:
        yield field_finding(
            "parallel.pipeline",
            "parallelism.pipeline.not_a_divisor_of_layers",
            "parallel.pipeline must divide the {layers} layers, got {pipeline}; "
            "valid values: {valid}",
            layers=architecture.layers,
            pipeline=plan.pipeline,
            valid=_join_numbers(_divisors(architecture.layers)),
        )
    experts = architecture.experts.count if architecture.experts else 0
    if plan.expert > 1 and not experts:
        yield field_finding(
            "parallel.expert",
            "parallelism.expert.dense_model",
            "parallel.expert must be 1: {architecture} has no experts, got {expert}",
            architecture=architecture.name,
            expert=plan.expert,
        )
    elif experts and experts % plan.expert:
        yield field_finding(
            "parallel.expert",
            "parallelism.expert.not_a_divisor_of_experts",
            "parallel.expert must divide the {experts} experts, got {expert}; valid "
            "values: {valid}",
            experts=experts,
            expert=plan.expert,
            valid=_join_numbers(_divisors(experts)),
        )


def _check_tensor_within_ring(plan: ParallelPlan, *, chip: Chip) -> Iterator[FieldFinding]:
    ring = ring_size(chip)
    if ring and plan.tensor > ring:
        yield field_finding(
            "parallel.tensor",
            "parallelism.tensor.interconnect_exceeded",
            "parallel.tensor must be at most {limit}, the number of cards of {chip} "
            "with a direct link, got {tensor}",
            limit=ring,
            chip=chip.label,
            tensor=plan.tensor,
        )


def _join_numbers(numbers: list[int]) -> str:
    return ", ".join(str(each) for each in numbers)
