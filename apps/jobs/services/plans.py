"""How the cards of a fine-tune share the model: what was asked for, and where nothing was, what suits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from controlplane.domain import parallel, sizing
from controlplane.domain.accelerators import Chip, ChipKind
from controlplane.domain.architectures import Architecture, ConfigRefused, read
from controlplane.domain.fields import Finding, Limit, check_limits
from controlplane.domain.parallel import Plan
from controlplane.domain.resources import bytes_in_words
from controlplane.ports.engines import Engine, ModelFacts, Task

#: Where a spec does not say, engines cut rows here.
_USUAL_LENGTH = 2048
#: Above so many parameters engines compute activations again.
_RECOMPUTE_FROM = 1_000_000_000
#: The fields of a plan that are proposed.
_PROPOSED = ("tensor", "pipeline", "data", "context", "expert", "zero_stage")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A fine-tune on so many cards, each of one of the chips."""

    engine: Engine
    #: With every default written out.
    spec: Mapping[str, Any]
    model: ModelFacts
    chips: Sequence[Chip]
    cards: int


def plan_settle(wanted: Wanted) -> tuple[Mapping[str, Any], tuple[Finding, ...]]:
    """The group ``parallel`` with nothing left open, and what is wrong with it.

    Cards of a processor are shares of its cores, which one process uses; nothing is divided there.
    """
    asked = wanted.spec["parallel"]
    if all(chip.kind is ChipKind.CPU for chip in wanted.chips):
        return asked, ()
    architecture = _architecture(wanted.model)
    if any(asked[name] is not None for name in _PROPOSED):
        plan = parallel.read_plan(asked, cards=wanted.cards)
        return _written(plan, asked), _wrong(plan, wanted, architecture)
    if architecture is None:
        plan = Plan(data=wanted.cards)
        return _written(plan, asked), _wrong(plan, wanted, architecture)
    plan_or_wrong = _proposed(wanted, architecture)
    if isinstance(plan_or_wrong, Finding):
        return asked, (plan_or_wrong,)
    return _written(plan_or_wrong, asked), ()


def replicas_of(chips: Sequence[Chip], cards: int) -> tuple[int, int]:
    """Nodes, and the cards of each, for so many cards in all."""
    node = min((chip.cards_per_node for chip in chips if chip.cards_per_node), default=0)
    if not node or cards <= node or cards % node:
        return 1, cards
    return cards // node, node


def _architecture(model: ModelFacts) -> Architecture | None:
    try:
        return read(model.config, parameters=model.parameters or None)
    except ConfigRefused:
        return None


def _wrong(plan: Plan, wanted: Wanted, architecture: Architecture | None) -> tuple[Finding, ...]:
    found: dict[str, Finding] = {}
    for chip in wanted.chips:
        for finding in (
            *parallel.check(plan, cards=wanted.cards, architecture=architecture, chip=chip),
            *_limited(plan, wanted, chip),
        ):
            found.setdefault(finding.message, finding)
    return tuple(found.values())


def _proposed(wanted: Wanted, architecture: Architecture) -> Plan | Finding:
    """The plan that suits; where none fits into memory the one that comes nearest, unless weights alone do not."""
    possible: list[Plan] = []

    def fits(plan: Plan) -> bool:
        if _wrong(plan, wanted, architecture):
            return False
        possible.append(plan)
        training = _training(plan, wanted)
        return all(sizing.training_fits(architecture, training, chip=chip) for chip in wanted.chips)

    plan = parallel.propose(
        cards=wanted.cards, architecture=architecture, chip=wanted.chips[0], fits=fits
    )
    if plan is not None:
        return plan
    if not possible:
        return _impossible(wanted, architecture)
    nearest = min(possible, key=lambda each: _memory(each, wanted, architecture).total)
    return _too_heavy(nearest, wanted, architecture) or nearest


def _impossible(wanted: Wanted, architecture: Architecture) -> Finding:
    plan = Plan(data=wanted.cards)
    reasons = "; ".join(finding.message for finding in _wrong(plan, wanted, architecture))
    return Finding(
        field="cards",
        message=f"{wanted.engine.name} cannot share {wanted.model.name} among {wanted.cards} cards of "
        f"{wanted.chips[0].label}: {reasons}",
    )


def _too_heavy(plan: Plan, wanted: Wanted, architecture: Architecture) -> Finding | None:
    """What to ask for where not even the weights fit; None where they do."""
    small = min(wanted.chips, key=lambda chip: chip.memory)
    weights = _memory(plan, wanted, architecture).weights
    if weights <= small.memory:
        return None
    small_steps = replace(wanted, spec={**wanted.spec, "batch_size": 1, "recompute": "on"})
    if enough := _enough(wanted, architecture, small):
        advice = f"{enough.cards} cards would be enough"
    elif enough := _enough(small_steps, architecture, small):
        advice = f"{enough.cards} cards would be enough with batch_size 1 and recompute on"
    else:
        advice = "train an adapter (method lora), or take another engine or chip"
    return Finding(
        field="cards",
        message=f"the weights alone take {bytes_in_words(weights)} on each of {wanted.cards} cards of "
        f"{small.label}, which hold {bytes_in_words(small.memory)}; {advice}",
    )


def _enough(wanted: Wanted, architecture: Architecture, chip: Chip) -> Plan | None:
    """The plan on the fewest cards of that chip on which everything fits; None where none does."""
    return parallel.smallest(
        architecture=architecture,
        chip=chip,
        fits=lambda plan: (
            not _limited(plan, wanted, chip)
            and sizing.training_fits(architecture, _training(plan, wanted), chip=chip)
        ),
    )


def _limited(plan: Plan, wanted: Wanted, chip: Chip) -> tuple[Finding, ...]:
    limits: Sequence[Limit] = wanted.engine.limits(Task.FINETUNE, chip=chip, model=wanted.model)
    return check_limits(
        wanted.engine.fields(Task.FINETUNE),
        {"parallel": _written(plan, {})},
        [limit for limit in limits if limit.field.startswith("parallel.")],
    )


def _memory(plan: Plan, wanted: Wanted, architecture: Architecture) -> sizing.TrainingMemory:
    return sizing.training_memory(architecture, _training(plan, wanted))


def _training(plan: Plan, wanted: Wanted) -> sizing.Training:
    spec = wanted.spec
    length = min(spec["max_length"] or _USUAL_LENGTH, wanted.model.context_length or _USUAL_LENGTH)
    adapter = None
    if spec["method"] != "full":
        base = "bfloat16" if spec["method"] == "lora" else "nf4-double"
        adapter = sizing.Adapter(rank=spec["lora"]["rank"], base=sizing.scheme_called(base))
    recompute = spec["recompute"] == "on" or (
        spec["recompute"] == "auto" and wanted.model.parameters > _RECOMPUTE_FROM
    )
    return sizing.Training(
        batch=spec["batch_size"],
        length=length,
        accumulation=spec["gradient_accumulation"],
        mixed=sizing.Mixed.FLOAT32 if spec["precision"] == "float32" else sizing.Mixed.AUTOCAST,
        adapter=adapter,
        recompute=recompute,
        reference=spec["objective"] == "dpo" and adapter is None,
        plan=plan,
    )


def _written(plan: Plan, asked: Mapping[str, Any]) -> dict[str, Any]:
    return {**asked, **{name: getattr(plan, name) for name in _PROPOSED}}
