"""One answer to "does it fit": the parts, the plan, and the largest that would fit.

A plan that is asked for is judged as it is; where none is given, the smallest legal one that fits is proposed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from controlplane.domain.architectures import Architecture
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.resources import Bytes
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.jobs.parallelism import (
    SINGLE_CARD,
    ParallelPlan,
    check,
    read_plan,
    smallest,
)
from controlplane.domain.sizing.activations import Mixed
from controlplane.domain.sizing.caches import bytes_per_token
from controlplane.domain.sizing.engines import USUAL, EngineMemory
from controlplane.domain.sizing.fitting import (
    TRAINING_FRACTION,
    deployment,
    largest_batch,
    largest_concurrency,
    largest_context,
    too_large,
    training_fits,
    training_plan,
    usable,
)
from controlplane.domain.sizing.precisions import Scheme, scheme_called, stored_scheme
from controlplane.domain.sizing.serving import Serving, ServingMemory, serving_memory
from controlplane.domain.sizing.training import Adapter, Training, TrainingMemory, training_memory

_SERVING_PARTS = ("weights", "cache", "activations", "logits", "graphs", "process")
_TRAINING_PARTS = ("weights", "gradients", "optimizer", "activations", "logits", "process")
_MOST_CARDS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One share of a card's memory."""

    #: ``weights``, ``cache`` …
    name: str
    bytes: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one card of the plan holds, and what would fit."""

    task: str
    #: Of the fullest card, in the order in which they come to be.
    parts: tuple[Part, ...]
    #: Of the parts, what is never held at the same time.
    not_at_once: Bytes
    total: Bytes
    #: Of one card; None where the chip has no memory of its own.
    limit: Bytes | None
    fits: bool
    #: Whether what is asked can run at all, whatever memory it takes.
    legal: bool
    plan: ParallelPlan
    #: Whether nobody asked for that plan.
    proposed: bool
    replicas: int = 1
    #: Bytes of the KV cache for one token on one card.
    bytes_per_token: float = 0.0
    #: The largest that fit with everything else as it is; None where the task does not ask for it or the chip has
    #: no memory of its own.
    largest_context: int | None = None
    largest_concurrency: int | None = None
    largest_batch: int | None = None
    findings: tuple[FieldFinding, ...] = ()


def answer(
    architecture: Architecture,
    question: Mapping[str, Any],
    *,
    chip: Chip,
    scheme: str = "",
    memory: EngineMemory = USUAL,
) -> Answer:
    """``question`` is complete and right (``controlplane.domain.specs.sizing``).

    ``scheme`` is what the model's weights are stored in, empty for plain ones.

    :raises UnknownScheme: if nobody knows how wide it is.
    """
    if question["task"] == "serve":
        wanted = serving_wanted(architecture, question, scheme=scheme, memory=memory)
        return _serve(architecture, wanted, question, chip=chip)
    training = training_wanted(question, memory=memory)
    return _train(architecture, training, question, chip=chip)


def serving_wanted(
    architecture: Architecture,
    question: Mapping[str, Any],
    *,
    scheme: str = "",
    memory: EngineMemory = USUAL,
) -> Serving:
    """:raises UnknownScheme: if nobody knows how wide the stored scheme is."""
    value = 4 if question["precision"] == "float32" else 2
    return Serving(
        scheme=_scheme(architecture, question, scheme=scheme),
        context=question["context"],
        concurrency=question["concurrency"],
        cache_value_bytes=1 if question["kv_precision"] == "fp8" else value,
        value_bytes=value,
        memory_fraction=question["memory_fraction"],
        traits=memory.serving,
    )


def training_wanted(question: Mapping[str, Any], *, memory: EngineMemory = USUAL) -> Training:
    half = question["precision"] != "float32"
    adapter = None
    if question["method"] != "full":
        base = "nf4-double" if question["method"] == "qlora" else "bfloat16"
        base = base if half or question["method"] == "qlora" else "float32"
        adapter = Adapter(rank=question["rank"], base=scheme_called(base))
    return Training(
        batch=question["batch"],
        length=question["context"],
        accumulation=question["gradient_accumulation"],
        mixed=memory.half if half else Mixed.FLOAT32,
        adapter=adapter,
        recompute=question["recompute"] == "on",
        drops_gradients=memory.drops_gradients,
    )


def _scheme(architecture: Architecture, question: Mapping[str, Any], *, scheme: str) -> Scheme:
    if question["scheme"] != "stored":
        return scheme_called(question["scheme"])
    return stored_scheme(architecture, scheme=scheme)


def _asked(question: Mapping[str, Any]) -> ParallelPlan | None:
    """The plan that was asked for, if any of it was."""
    values = question.get("parallel") or {}
    named = any(
        values.get(name) is not None
        for name in ("tensor", "pipeline", "data", "context", "expert", "zero_stage")
    )
    if not named:
        return None
    return read_plan(values, cards=question["cards"] or 1)


def _serve(
    architecture: Architecture, wanted: Serving, question: Mapping[str, Any], *, chip: Chip
) -> Answer:
    asked, cards = _asked(question), question["cards"]
    replicas = 1
    if asked is None and cards is None and chip.memory:
        found = deployment(architecture, wanted, chip=chip)
        plan = found.plan if found else SINGLE_CARD
        replicas = found.replicas if found else 1
        if found and replicas > 1:
            wanted = replace(wanted, concurrency=min(found.concurrency, wanted.concurrency))
    else:
        plan = asked or ParallelPlan(tensor=cards or 1)
    wanted = replace(wanted, plan=plan)
    held = serving_memory(architecture, wanted)
    limit = usable(chip, wanted.memory_fraction)
    illegal = list(
        check(plan, cards=cards or plan.cards, architecture=architecture, chip=chip, serves=True)
    )
    if architecture.context and wanted.context > architecture.context:
        illegal.append(
            FieldFinding(
                field="context",
                message=f"context must be at most {architecture.context}, which the model was made for, "
                f"got {wanted.context}",
            )
        )
    findings = list(illegal)
    if limit is not None and held.total > limit:
        findings.append(too_large(held, limit=limit, chip=chip))
    return Answer(
        task="serve",
        parts=_parts(held, _SERVING_PARTS),
        not_at_once=Bytes(0),
        total=held.total,
        limit=limit,
        fits=limit is None or held.total <= limit,
        legal=not illegal,
        plan=plan,
        proposed=asked is None,
        replicas=replicas,
        bytes_per_token=bytes_per_token(
            architecture,
            value_bytes=wanted.cache_value_bytes,
            tensor=plan.tensor,
            latent=wanted.traits.latent,
        ),
        largest_context=largest_context(architecture, wanted, chip=chip) if limit else None,
        largest_concurrency=largest_concurrency(architecture, wanted, chip=chip) if limit else None,
        findings=tuple(findings),
    )


def _train(
    architecture: Architecture, wanted: Training, question: Mapping[str, Any], *, chip: Chip
) -> Answer:
    asked, cards = _asked(question), question["cards"]
    plan = asked or _proposed(architecture, wanted, chip=chip, cards=cards)
    wanted = replace(wanted, plan=plan)
    held = training_memory(architecture, wanted)
    limit = usable(chip, TRAINING_FRACTION)
    illegal = check(plan, cards=cards or plan.cards, architecture=architecture, chip=chip)
    findings = list(illegal)
    if limit is not None and held.total > limit:
        findings.append(too_large(held, limit=limit, chip=chip))
    return Answer(
        task="train",
        parts=_parts(held, _TRAINING_PARTS),
        not_at_once=held.not_at_once,
        total=held.total,
        limit=limit,
        fits=limit is None or held.total <= limit,
        legal=not illegal,
        plan=plan,
        proposed=asked is None,
        largest_batch=largest_batch(architecture, wanted, chip=chip) if limit else None,
        findings=tuple(findings),
    )


def _proposed(
    architecture: Architecture, wanted: Training, *, chip: Chip, cards: int | None
) -> ParallelPlan:
    """The first that fits; where none does, copies alone."""
    if cards is not None:
        found = training_plan(architecture, wanted, chip=chip, cards=cards)
        return found or ParallelPlan(data=cards)
    found = smallest(
        architecture=architecture,
        chip=chip,
        fits=lambda plan: training_fits(architecture, replace(wanted, plan=plan), chip=chip),
        most=_MOST_CARDS,
    )
    return found or SINGLE_CARD


def _parts(held: ServingMemory | TrainingMemory, names: tuple[str, ...]) -> tuple[Part, ...]:
    return tuple(Part(name=name, bytes=getattr(held, name)) for name in names)
