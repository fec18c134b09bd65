"""Parallelism of one replica: how its cards share the model.

::

    cards  =  tensor × pipeline × data        experts are shared by tensor × data cards, or sliced by each

If ``tensor`` is not set, it is ``cards / (pipeline × data)``. On several nodes the layers are divided among the
nodes then, unless ``pipeline`` or ``data`` is set: tensor parallel cards communicate at every layer, and the
network between nodes is slower than the links of cards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from controlplane.domain.architectures import Architecture, ConfigRefused, parse_architecture
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import FieldFinding, field_finding
from controlplane.domain.jobs import parallelism
from controlplane.domain.jobs.parallelism import ParallelPlan


def replica_parallelism(values: Mapping[str, Any], *, cards: int, nodes: int = 1) -> ParallelPlan:
    """The parallel plan of a spec's group ``parallel`` on that many cards of one replica.

    ``expert`` is the number of cards that share the experts, 1 where each slices all of them.

    :param nodes: nodes of the replica; each has the same number of its cards.
    :raises ValueError: if the product is not the number of cards.
    """
    wrong = _card_count_finding(values, cards=cards)
    if wrong:
        raise ValueError(wrong.message)
    pipeline, data = int(values.get("pipeline") or 1), int(values.get("data") or 1)
    if not values.get("tensor") and pipeline == data == 1:
        pipeline = nodes
    tensor = int(values.get("tensor") or cards // (pipeline * data))
    shared = values.get("expert") == "on"
    return ParallelPlan(
        tensor=tensor, pipeline=pipeline, data=data, expert=tensor * data if shared else 1
    )


def architecture_from_config(config: Mapping[str, Any]) -> Architecture | None:
    """The architecture in ``config.json``; None where the file is missing or not supported."""
    if not config:
        return None
    try:
        return parse_architecture(config)
    except ConfigRefused:
        return None


def check_replica_parallelism(
    values: Mapping[str, Any],
    *,
    cards: int,
    architecture: Architecture | None,
    chip: Chip | None,
    nodes: int = 1,
) -> tuple[FieldFinding, ...]:
    """Findings that make the group ``parallel`` of a checked spec impossible on that many cards of the nodes."""
    wrong = _card_count_finding(values, cards=cards)
    if wrong:
        return (wrong,)
    return tuple(
        _parallelism_findings(
            values, cards=cards, architecture=architecture, chip=chip, nodes=nodes
        )
    )


def _parallelism_findings(
    values: Mapping[str, Any],
    *,
    cards: int,
    architecture: Architecture | None,
    chip: Chip | None,
    nodes: int,
) -> Iterator[FieldFinding]:
    plan = replica_parallelism(values, cards=cards, nodes=nodes)
    halves = ParallelPlan(tensor=plan.tensor, data=plan.pipeline * plan.data)
    # Engines run tensor parallelism across nodes too, slowly: only if the spec asks for it.
    across_nodes = nodes > 1 and values.get("tensor") == cards
    found = parallelism.check_plan(
        halves, cards=cards, architecture=architecture, chip=None if across_nodes else chip
    )
    if across_nodes and chip is not None:
        found += parallelism.check_card_count(cards, chip=chip)
    for finding in found:
        # Without an explicit tensor size, the finding is about the number of cards.
        left_open = finding.field == "parallel.tensor" and not values.get("tensor")
        yield (
            field_finding(
                "cards",
                "parallelism.tensor.implied_by_cards",
                "{reason}; {cards} cards are used for tensor parallelism, because parallel.tensor is empty",
                reason=finding.message,
                cards=plan.tensor,
            )
            if left_open
            else finding
        )
    if architecture is None:
        return
    if plan.pipeline > architecture.layers:
        yield field_finding(
            "parallel.pipeline",
            "parallelism.replica.pipeline_too_large",
            "parallel.pipeline must be at most {layers}, the number of layers of the "
            "model, got {pipeline}",
            layers=architecture.layers,
            pipeline=plan.pipeline,
        )
    if values.get("expert") == "on" and architecture.experts is None:
        yield field_finding(
            "parallel.expert",
            "parallelism.expert.not_supported",
            "parallel.expert must be 'off': {architecture} has no experts, got 'on'",
            architecture=architecture.name,
        )


def _card_count_finding(values: Mapping[str, Any], *, cards: int) -> FieldFinding | None:
    tensor = values.get("tensor")
    pipeline, data = int(values.get("pipeline") or 1), int(values.get("data") or 1)
    product = (tensor or 1) * pipeline * data
    if tensor and product != cards:
        message = Reason(
            "parallelism.replica.product_mismatch",
            "tensor {tensor} × pipeline {pipeline} × data {data} is {product}; it must "
            "equal the number of cards of a replica, {cards}",
            tensor=tensor,
            pipeline=pipeline,
            data=data,
            product=product,
            cards=cards,
        )
        return FieldFinding(field="parallel", message=message)
    if not tensor and cards % product:
        message = Reason(
            "parallelism.replica.product_not_a_divisor",
            "pipeline {pipeline} × data {data} is {product}, which does not divide the "
            "number of cards of a replica, {cards}",
            pipeline=pipeline,
            data=data,
            product=product,
            cards=cards,
        )
        return FieldFinding(field="parallel", message=message)
    return None
