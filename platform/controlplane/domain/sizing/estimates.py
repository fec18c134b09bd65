"""Memory estimate for a model on a chip: the parts, the parallel plan, and the largest values that fit.

A requested plan is evaluated as it is; without one, the smallest valid plan that fits is proposed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from controlplane.domain.architectures import Architecture
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.resources import Bytes
from controlplane.domain.common.spec_fields import FieldFinding, field_finding
from controlplane.domain.jobs.parallelism import (
    SINGLE_CARD,
    ParallelPlan,
    check_plan,
    parse_parallel_plan,
    smallest_plan,
)
from controlplane.domain.sizing.plan_search import (
    TRAINING_MEMORY_FRACTION,
    fits_training_memory,
    insufficient_memory_finding,
    largest_batch,
    largest_concurrency,
    largest_context,
    plan_replicas,
    training_plan,
    usable_card_memory,
)
from controlplane.domain.sizing.serving import (
    PAGED,
    ServingMemory,
    ServingTraits,
    ServingWorkload,
    bytes_per_token,
    serving_memory,
)
from controlplane.domain.sizing.training import (
    LoraAdapter,
    MixedPrecision,
    TrainingMemory,
    TrainingWorkload,
    training_memory,
)
from controlplane.domain.sizing.weights import WeightScheme, stored_scheme, weight_scheme


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineMemory:
    """How an engine uses memory; each engine plug-in provides it. The defaults apply to engines that do not."""

    serving: ServingTraits = PAGED
    #: Mixed-precision mode of full fine-tuning in 16 bits.
    half: MixedPrecision = MixedPrecision.MASTER_COPY
    #: Gradients of a step are freed before the next step begins.
    drops_gradients: bool = False


DEFAULT_ENGINE_MEMORY = EngineMemory()
_SERVING_PARTS = ("weights", "adapters", "cache", "activations", "logits", "graphs", "process")
_TRAINING_PARTS = ("weights", "gradients", "optimizer", "activations", "logits", "process")
_MAX_CARDS = 1024
#: Number of parameters above which engines recompute activations on accelerators by default.
_RECOMPUTED_ABOVE = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPart:
    #: ``weights``, ``cache`` …
    name: str
    bytes: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingEstimate:
    """Memory of the fullest card of the plan, and the largest values that fit."""

    task: str
    #: Parts of the fullest card, in order of allocation.
    parts: tuple[MemoryPart, ...]
    #: Bytes of the parts that are never allocated at the same time.
    not_at_once: Bytes
    total: Bytes
    #: Usable bytes of one card; None if the chip has no memory of its own.
    limit: Bytes | None
    fits: bool
    #: Whether the request is valid regardless of memory.
    legal: bool
    plan: ParallelPlan
    #: Whether the plan was proposed rather than requested.
    proposed: bool
    replicas: int = 1
    #: Bytes of the KV cache for one token on one card.
    bytes_per_token: float = 0.0
    #: Largest values that fit with all others unchanged; None if the task does not use it or the chip has
    #: no memory of its own.
    largest_context: int | None = None
    largest_concurrency: int | None = None
    largest_batch: int | None = None
    findings: tuple[FieldFinding, ...] = ()


def estimate_model_memory(
    architecture: Architecture,
    request: Mapping[str, Any],
    *,
    chip: Chip,
    scheme: str = "",
    memory: EngineMemory = DEFAULT_ENGINE_MEMORY,
) -> SizingEstimate:
    """Estimate a complete and valid request (``controlplane.domain.specs.sizing``).

    ``scheme`` is the quantization scheme of the model's stored weights, empty if they are not quantized.

    :raises UnknownScheme: if its width is unknown.
    """
    if request["task"] == "serve":
        workload = serving_workload(architecture, request, scheme=scheme, memory=memory)
        return _estimate_serving(architecture, workload, request, chip=chip)
    training = training_workload(request, memory=memory)
    return _estimate_training(architecture, training, request, chip=chip)


def serving_workload(
    architecture: Architecture,
    request: Mapping[str, Any],
    *,
    scheme: str = "",
    memory: EngineMemory = DEFAULT_ENGINE_MEMORY,
) -> ServingWorkload:
    """:raises UnknownScheme: if the width of the stored scheme is unknown."""
    value = 4 if request["precision"] == "float32" else 2
    return ServingWorkload(
        scheme=_weight_scheme(architecture, request, scheme=scheme),
        context=request["context"],
        concurrency=request["concurrency"],
        cache_value_bytes=1 if request["kv_precision"] == "fp8" else value,
        value_bytes=value,
        memory_fraction=request["memory_fraction"],
        traits=memory.serving,
        adapters=request["adapters"],
        adapter_rank=request["rank"] if request["adapters"] else 0,
    )


def training_workload(
    request: Mapping[str, Any], *, memory: EngineMemory = DEFAULT_ENGINE_MEMORY
) -> TrainingWorkload:
    half = request["precision"] != "float32"
    adapter = None
    if request["method"] != "full":
        base = "nf4-double" if request["method"] == "qlora" else "bfloat16"
        base = base if half or request["method"] == "qlora" else "float32"
        adapter = LoraAdapter(rank=request["rank"], base=weight_scheme(base))
    return TrainingWorkload(
        batch=request["batch"],
        length=request["context"],
        accumulation=request["gradient_accumulation"],
        mixed=memory.half if half else MixedPrecision.FLOAT32,
        adapter=adapter,
        recompute=request["recompute"] == "on",
        drops_gradients=memory.drops_gradients,
    )


def finetune_workload(
    spec: Mapping[str, Any],
    *,
    memory: EngineMemory,
    parameters: int,
    length: int,
    plan: ParallelPlan,
    accelerated: bool = True,
) -> TrainingWorkload:
    """The workload of a fine-tune.

    :param spec: the complete spec of an engine.
    :param parameters: number of parameters of the model.
    :param length: tokens of the longest example.
    :param accelerated: whether it runs on an accelerator, where engines compute in 16 bits by default.
    """
    half = spec["precision"] in ("bfloat16", "float16") or (
        spec["precision"] == "auto" and accelerated
    )
    recompute = spec.get("recompute", "auto")
    large = accelerated and parameters > _RECOMPUTED_ABOVE
    return TrainingWorkload(
        batch=spec["batch_size"],
        length=length,
        accumulation=spec["gradient_accumulation"],
        mixed=memory.half if half else MixedPrecision.FLOAT32,
        adapter=_finetune_adapter(spec, half=half),
        recompute=large if recompute == "auto" else recompute == "on",
        drops_gradients=memory.drops_gradients,
        reference=spec.get("objective") == "dpo" and spec["method"] == "full",
        plan=plan,
    )


def _finetune_adapter(spec: Mapping[str, Any], *, half: bool) -> LoraAdapter | None:
    if spec["method"] == "full":
        return None
    if spec["method"] == "qlora":
        settings = spec["qlora"]
        double = settings["double_quantization"] == "on"
        base = ("nf4-double" if double else "nf4") if settings["bits"] == 4 else "int8"
    else:
        base = "bfloat16" if half else "float32"
    return LoraAdapter(rank=spec["lora"]["rank"], base=weight_scheme(base))


def _weight_scheme(
    architecture: Architecture, request: Mapping[str, Any], *, scheme: str
) -> WeightScheme:
    if request["scheme"] != "stored":
        return weight_scheme(request["scheme"])
    return stored_scheme(architecture, scheme=scheme)


def _requested_plan(request: Mapping[str, Any]) -> ParallelPlan | None:
    """The requested plan; None if the request names no part of one."""
    values = request.get("parallel") or {}
    named = any(
        values.get(name) is not None
        for name in ("tensor", "pipeline", "data", "context", "expert", "zero_stage")
    )
    if not named:
        return None
    return parse_parallel_plan(values, cards=request["cards"] or 1)


def _estimate_serving(
    architecture: Architecture, workload: ServingWorkload, request: Mapping[str, Any], *, chip: Chip
) -> SizingEstimate:
    requested, cards = _requested_plan(request), request["cards"]
    replicas = 1
    if requested is None and cards is None and chip.memory:
        found = plan_replicas(architecture, workload, chip=chip)
        plan = found.plan if found else SINGLE_CARD
        replicas = found.replicas if found else 1
        if found and replicas > 1:
            workload = replace(workload, concurrency=min(found.concurrency, workload.concurrency))
    else:
        plan = requested or ParallelPlan(tensor=cards or 1)
    workload = replace(workload, plan=plan)
    usage = serving_memory(architecture, workload)
    limit = usable_card_memory(chip, workload.memory_fraction)
    illegal = list(
        check_plan(
            plan, cards=cards or plan.cards, architecture=architecture, chip=chip, serves=True
        )
    )
    if architecture.context and workload.context > architecture.context:
        illegal.append(
            field_finding(
                "context",
                "sizing.context.too_long",
                "context must be at most {limit}, the maximum context length of the "
                "model, got {context}",
                limit=architecture.context,
                context=workload.context,
            )
        )
    findings = list(illegal)
    if limit is not None and usage.total > limit:
        findings.append(insufficient_memory_finding(usage, limit=limit, chip=chip))
    return SizingEstimate(
        task="serve",
        parts=_memory_parts(usage, _SERVING_PARTS),
        not_at_once=Bytes(0),
        total=usage.total,
        limit=limit,
        fits=limit is None or usage.total <= limit,
        legal=not illegal,
        plan=plan,
        proposed=requested is None,
        replicas=replicas,
        bytes_per_token=bytes_per_token(
            architecture,
            value_bytes=workload.cache_value_bytes,
            tensor=plan.tensor,
            latent=workload.traits.latent,
        ),
        largest_context=largest_context(architecture, workload, chip=chip) if limit else None,
        largest_concurrency=largest_concurrency(architecture, workload, chip=chip)
        if limit
        else None,
        findings=tuple(findings),
    )


def _estimate_training(
    architecture: Architecture,
    workload: TrainingWorkload,
    request: Mapping[str, Any],
    *,
    chip: Chip,
) -> SizingEstimate:
    requested, cards = _requested_plan(request), request["cards"]
    plan = requested or _propose_plan(architecture, workload, chip=chip, cards=cards)
    workload = replace(workload, plan=plan)
    usage = training_memory(architecture, workload)
    limit = usable_card_memory(chip, TRAINING_MEMORY_FRACTION)
    illegal = check_plan(plan, cards=cards or plan.cards, architecture=architecture, chip=chip)
    findings = list(illegal)
    if limit is not None and usage.total > limit:
        findings.append(insufficient_memory_finding(usage, limit=limit, chip=chip))
    return SizingEstimate(
        task="train",
        parts=_memory_parts(usage, _TRAINING_PARTS),
        not_at_once=usage.not_at_once,
        total=usage.total,
        limit=limit,
        fits=limit is None or usage.total <= limit,
        legal=not illegal,
        plan=plan,
        proposed=requested is None,
        largest_batch=largest_batch(architecture, workload, chip=chip) if limit else None,
        findings=tuple(findings),
    )


def _propose_plan(
    architecture: Architecture, workload: TrainingWorkload, *, chip: Chip, cards: int | None
) -> ParallelPlan:
    """The first plan that fits; if none does, data parallelism only."""
    if cards is not None:
        found = training_plan(architecture, workload, chip=chip, cards=cards)
        return found or ParallelPlan(data=cards)
    found = smallest_plan(
        architecture=architecture,
        chip=chip,
        fits=lambda plan: fits_training_memory(
            architecture, replace(workload, plan=plan), chip=chip
        ),
        most=_MAX_CARDS,
    )
    return found or SINGLE_CARD


def _memory_parts(
    usage: ServingMemory | TrainingMemory, names: tuple[str, ...]
) -> tuple[MemoryPart, ...]:
    parts = (MemoryPart(name=name, bytes=getattr(usage, name)) for name in names)
    return tuple(part for part in parts if part.bytes or part.name != "adapters")
