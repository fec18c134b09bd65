"""Resolution of requested resources: acceptable chips, replicas, and the parallel plan of a fine-tune.

::

    cpu, ascend-910b3 …    that chip, by its name or an alias
    gpu, npu               every chip of that kind        ┐ that the fleet has and the engine runs on;
    any                    every chip, CPUs last          ┘ the job gets the one with the best placement
    mig-1g.10gb            every chip with slices of that profile in the fleet; the groups above exclude slices
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from apps.quotas import selectors as quotas
from controlplane.domain import sizing
from controlplane.domain.architectures import Architecture, ConfigRefused, parse_architecture
from controlplane.domain.common.accelerators import Chip, ChipKind
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.resources import format_bytes
from controlplane.domain.common.spec_fields import (
    FieldFinding,
    FieldLimit,
    check_limits,
    field_finding,
)
from controlplane.domain.jobs import parallelism
from controlplane.domain.jobs.parallelism import ParallelPlan
from controlplane.ports import adapter_registry
from controlplane.ports.engines import Engine, EngineTask, ModelFacts

ANY = "any"
#: The engine that is part of Ninefold; it supports most tasks.
DEFAULT_ENGINE = "transformers"
#: Names of groups of chips; ``cpu`` is the name of a chip.
CHIP_GROUPS = (ANY, ChipKind.GPU.value, ChipKind.NPU.value)


def expand_chip_names(
    requested: Sequence[str],
    *,
    engine: Engine,
    task: EngineTask,
    free: Mapping[str, int] | None = None,
) -> tuple[tuple[Chip, ...], tuple[FieldFinding, ...]]:
    """Resolve requested chips and groups to chips, the preferred first and each once, with findings.

    :param free: unallocated cards by chip, if the caller has counted them already.
    """
    groups = {*CHIP_GROUPS, *_known_slice_profiles()}
    if free is None and any(group in groups for group in requested):
        free = quotas.count_free_cards()
    free = free or {}
    chosen: dict[str, Chip] = {}
    refusals: list[str] = []
    if not requested:
        refusals.append(Reason("job.chips.missing", "choose at least one acceptable chip"))
    for group in requested:
        if group in groups:
            found = _fleet_chips_of_group(group, engine=engine, task=task, free=free)
            if not found:
                refusals.append(_no_chip_message(group, engine=engine, task=task, free=free))
            chosen |= {chip.name: chip for chip in found}
            continue
        chip = adapter_registry.chip_by_name(group)
        if chip is None:
            whole = (one.name for one in adapter_registry.all_chips().values() if not one.slice_of)
            known = ", ".join((*CHIP_GROUPS, *whole, *sorted(_known_slice_profiles())))
            message = Reason(
                "job.chip.unknown",
                "unknown chip {chip}; choose one of {chips}",
                chip=repr(group),
                chips=known,
            )
            refusals.append(message)
        elif reason := engine.unsupported_reason(task, chip):
            message = Reason(
                "job.engine.chip_not_supported",
                "{engine} does not support {task} on {chip}: {reason}",
                engine=engine.name,
                task=task,
                chip=chip.name,
                reason=reason,
            )
            refusals.append(message)
        else:
            chosen[chip.name] = chip
    findings = tuple(FieldFinding(field="chips", message=message) for message in refusals)
    return tuple(chosen.values()), findings


def default_engine_for_task(task: EngineTask, *, chips: Sequence[str]) -> str:
    """The default engine for a task: ``DEFAULT_ENGINE``, else the first by name.

    Engines that run on the first chip, or on a chip of that group, come before all others. If no engine supports
    the task, it is ``DEFAULT_ENGINE``, so that the refusal names it.
    """
    names = sorted(adapter_registry.engine_names(), key=lambda name: (name != DEFAULT_ENGINE, name))
    able = [name for name in names if task in adapter_registry.engine_by_name(name).tasks]
    preferred = _find_named_chips(chips[0]) if chips else ()
    running = (
        name
        for name in able
        if any(
            not adapter_registry.engine_by_name(name).unsupported_reason(task, chip)
            for chip in preferred
        )
    )
    return next(running, able[0] if able else DEFAULT_ENGINE)


def _find_named_chips(group: str) -> Sequence[Chip]:
    """Chips of that name or group, whether the fleet has them or not."""
    chip = adapter_registry.chip_by_name(group)
    if chip is not None:
        return (chip,)
    return [
        chip for chip in adapter_registry.all_chips().values() if _is_chip_in_group(group, chip)
    ]


def interchangeable_chip_count(requested: Sequence[str], chips: Sequence[str]) -> int:
    """Number of leading chips that are equally preferred: all of a group, or the one that is named.

    CPUs are never equal to accelerators.
    """
    if requested[0] not in {*CHIP_GROUPS, *_known_slice_profiles()}:
        return 1

    def is_interchangeable(chip: Chip | None) -> bool:
        if chip is None or chip.kind is ChipKind.CPU:
            return False
        return _is_chip_in_group(requested[0], chip)

    equal = takewhile(is_interchangeable, map(adapter_registry.chip_by_name, chips))
    return max(1, sum(1 for _ in equal))


def _fleet_chips_of_group(
    group: str, *, engine: Engine, task: EngineTask, free: Mapping[str, int]
) -> list[Chip]:
    """Chips of the group in the fleet, those with most unallocated cards first, CPUs last."""
    chips = [
        chip
        for chip in adapter_registry.all_chips().values()
        if chip.name in free
        and _is_chip_in_group(group, chip)
        and not engine.unsupported_reason(task, chip)
    ]
    return sorted(chips, key=lambda chip: (chip.kind is ChipKind.CPU, -free[chip.name], chip.name))


def _no_chip_message(
    group: str, *, engine: Engine, task: EngineTask, free: Mapping[str, int]
) -> str:
    known = adapter_registry.all_chips()
    in_fleet = [known[name] for name in free if name in known]
    matching = [chip for chip in in_fleet if _is_chip_in_group(group, chip)]
    if not matching:
        has = ", ".join(sorted(chip.name for chip in in_fleet)) or Reason(
            "fleet.chips.none", "no cards"
        )
        return Reason(
            "job.chips.not_in_fleet",
            "the fleet has no cards of the chip group {group}; it has {chips}",
            group=repr(group),
            chips=has,
        )
    reasons = [
        Reason(
            "job.engine.chip_reason",
            "{chip}: {reason}",
            chip=chip.name,
            reason=engine.unsupported_reason(task, chip),
        )
        for chip in matching
    ]
    return Reason(
        "job.engine.group_not_supported",
        "{engine} does not support {task} on any chip of the group {group} ({reasons})",
        engine=engine.name,
        task=task,
        group=repr(group),
        reasons=reasons,
    )


def _is_chip_in_group(group: str, chip: Chip) -> bool:
    if chip.slice_of:
        return group == chip.slice_profile
    return group in (ANY, chip.kind.value)


def _known_slice_profiles() -> frozenset[str]:
    return frozenset(
        chip.slice_profile for chip in adapter_registry.all_chips().values() if chip.slice_of
    )


#: Tokens to which engines truncate examples by default.
_DEFAULT_LENGTH = 2048
#: Of all engines: 16-bit weights have a float32 copy in the optimizer, so either way float32 weights must fit.
_PLANNED_MEMORY = sizing.EngineMemory(half=sizing.MixedPrecision.AUTOCAST)
#: Fields of the parallel plan that are proposed.
_PROPOSED = ("tensor", "pipeline", "data", "context", "expert", "zero_stage")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelPlanRequest:
    """A fine-tune that needs a parallel plan for its cards, on any of its chips."""

    engine: Engine
    #: With every default written out.
    spec: Mapping[str, Any]
    model: ModelFacts
    chips: Sequence[Chip]
    cards: int


def parallel_plan_resolve(
    request: ParallelPlanRequest,
) -> tuple[Mapping[str, Any], tuple[FieldFinding, ...]]:
    """The group ``parallel`` of the spec with every field set, and its findings.

    Cards of a CPU are shares of its cores, which one process uses; nothing is divided there.
    """
    requested = request.spec["parallel"]
    if all(chip.kind is ChipKind.CPU for chip in request.chips):
        return requested, ()
    architecture = _architecture_of(request.model)
    if any(requested[name] is not None for name in _PROPOSED):
        plan = parallelism.parse_parallel_plan(requested, cards=request.cards)
        return _plan_as_spec(plan, requested), _plan_findings(plan, request, architecture)
    if architecture is None:
        plan = ParallelPlan(data=request.cards)
        return _plan_as_spec(plan, requested), _plan_findings(plan, request, architecture)
    plan_or_wrong = _propose_plan(request, architecture)
    if isinstance(plan_or_wrong, FieldFinding):
        return requested, (plan_or_wrong,)
    return _plan_as_spec(plan_or_wrong, requested), ()


def _architecture_of(model: ModelFacts) -> Architecture | None:
    try:
        return parse_architecture(model.config, parameters=model.parameters or None)
    except ConfigRefused:
        return None


def _plan_findings(
    plan: ParallelPlan, request: ParallelPlanRequest, architecture: Architecture | None
) -> tuple[FieldFinding, ...]:
    found: dict[str, FieldFinding] = {}
    for chip in request.chips:
        for finding in (
            *parallelism.check_plan(
                plan, cards=request.cards, architecture=architecture, chip=chip
            ),
            *_engine_limit_findings(plan, request, chip),
        ):
            found.setdefault(finding.message, finding)
    return tuple(found.values())


def _propose_plan(
    request: ParallelPlanRequest, architecture: Architecture
) -> ParallelPlan | FieldFinding:
    """The first plan that fits; else the legal plan with the least memory, unless the weights alone do not fit."""
    legal: list[ParallelPlan] = []

    def fits(plan: ParallelPlan) -> bool:
        if _plan_findings(plan, request, architecture):
            return False
        legal.append(plan)
        training = _training_workload(plan, request)
        return all(
            sizing.fits_training_memory(architecture, training, chip=chip) for chip in request.chips
        )

    plan = parallelism.propose_plan(
        cards=request.cards, architecture=architecture, chip=request.chips[0], fits=fits
    )
    if plan is not None:
        return plan
    if not legal:
        return _no_parallel_plan_finding(request, architecture)
    nearest = min(legal, key=lambda each: _training_memory(each, request, architecture).total)
    return _oversized_weights_finding(nearest, request, architecture) or nearest


def _no_parallel_plan_finding(
    request: ParallelPlanRequest, architecture: Architecture
) -> FieldFinding:
    plan = ParallelPlan(data=request.cards)
    reasons = [finding.message for finding in _plan_findings(plan, request, architecture)]
    return field_finding(
        "cards",
        "job.parallelism.impossible",
        "{engine} cannot distribute {model} over {cards} cards of {chip}: {reasons}",
        engine=request.engine.name,
        model=request.model.name,
        cards=request.cards,
        chip=request.chips[0].label,
        reasons=reasons,
    )


def _oversized_weights_finding(
    plan: ParallelPlan, request: ParallelPlanRequest, architecture: Architecture
) -> FieldFinding | None:
    """A finding with advice if the weights alone do not fit; None if they do."""
    small = min(request.chips, key=lambda chip: chip.memory)
    weights = _training_memory(plan, request, architecture).weights
    if weights <= small.memory:
        return None
    small_steps = replace(request, spec={**request.spec, "batch_size": 1, "recompute": "on"})
    if enough := _smallest_plan(request, architecture, small):
        advice = f"{enough.cards} cards would be enough"
    elif enough := _smallest_plan(small_steps, architecture, small):
        advice = f"{enough.cards} cards would be enough with batch_size 1 and recompute on"
    else:
        advice = "train an adapter (method lora), or take another engine or chip"
    return field_finding(
        "cards",
        "job.memory.weights_too_large",
        "the weights alone require {weights} on each of {cards} cards of {chip}, "
        "which have {memory} of memory; {advice}",
        weights=format_bytes(weights),
        cards=request.cards,
        chip=small.label,
        memory=format_bytes(small.memory),
        advice=advice,
    )


def _smallest_plan(
    request: ParallelPlanRequest, architecture: Architecture, chip: Chip
) -> ParallelPlan | None:
    """The plan with the fewest cards of that chip that fits; None if no plan does."""
    return parallelism.smallest_plan(
        architecture=architecture,
        chip=chip,
        fits=lambda plan: (
            not _engine_limit_findings(plan, request, chip)
            and sizing.fits_training_memory(
                architecture, _training_workload(plan, request), chip=chip
            )
        ),
    )


def _engine_limit_findings(
    plan: ParallelPlan, request: ParallelPlanRequest, chip: Chip
) -> tuple[FieldFinding, ...]:
    limits: Sequence[FieldLimit] = request.engine.limits(
        EngineTask.FINETUNE, chip=chip, model=request.model
    )
    return check_limits(
        request.engine.fields(EngineTask.FINETUNE),
        {"parallel": _plan_as_spec(plan, {})},
        [limit for limit in limits if limit.field.startswith("parallel.")],
    )


def _training_memory(
    plan: ParallelPlan, request: ParallelPlanRequest, architecture: Architecture
) -> sizing.TrainingMemory:
    return sizing.training_memory(architecture, _training_workload(plan, request))


def _training_workload(plan: ParallelPlan, request: ParallelPlanRequest) -> sizing.TrainingWorkload:
    length = min(
        request.spec["max_length"] or _DEFAULT_LENGTH,
        request.model.context_length or _DEFAULT_LENGTH,
    )
    return sizing.finetune_workload(
        request.spec,
        memory=_PLANNED_MEMORY,
        parameters=request.model.parameters,
        length=length,
        plan=plan,
    )


def _plan_as_spec(plan: ParallelPlan, requested: Mapping[str, Any]) -> dict[str, Any]:
    return {**requested, **{name: getattr(plan, name) for name in _PROPOSED}}
