"""From what somebody says of chips to the chips that a job may run on.

::

    cpu, ascend-910b3 …    that chip, by its name or an alias
    gpu, npu               every chip of that kind        ┐ that the fleet has and the engine runs on;
    any                    every chip, processors last    ┘ the job gets the one where it fits best
    mig-1g.10gb            every chip with slices of that profile that the fleet has; the words above mean no slice
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

from apps.quotas import selectors as quotas
from controlplane.domain.accelerators import Chip, ChipKind
from controlplane.domain.fields import Finding
from controlplane.ports import registry
from controlplane.ports.engines import Engine, Task

ANY = "any"
#: The engine of the product, which does most tasks.
PREFERRED = "transformers"
#: Words that stand for chips; ``cpu`` is the name of its one chip.
WORDS = (ANY, ChipKind.GPU.value, ChipKind.NPU.value)


def chips_expand(
    asked: Sequence[str], *, engine: Engine, task: Task, free: Mapping[str, int] | None = None
) -> tuple[tuple[Chip, ...], tuple[Finding, ...]]:
    """The chips, the preferred first and each once, and what is wrong with what was asked.

    ``free`` are the cards that nobody holds, by chip, for whoever has counted them already.
    """
    words = {*WORDS, *_profiles()}
    if free is None and any(word in words for word in asked):
        free = quotas.cards_free()
    free = free or {}
    chosen: dict[str, Chip] = {}
    findings = []
    if not asked:
        findings.append(_finding(message="name at least one acceptable chip"))
    for word in asked:
        if word in words:
            found = _in_fleet(word, engine=engine, task=task, free=free)
            if not found:
                why = _none_found(word, engine=engine, task=task, free=free)
                findings.append(_finding(message=why))
            chosen |= {chip.name: chip for chip in found}
            continue
        chip = registry.chip_called(word)
        if chip is None:
            whole = (one.name for one in registry.chips().values() if not one.slice_of)
            known = ", ".join((*WORDS, *whole, *sorted(_profiles())))
            findings.append(_finding(message=f"no chip is called {word!r}; known: {known}"))
        elif reason := engine.runs_on(task, chip):
            message = f"{engine.name} does not {task} on {chip.name}: {reason}"
            findings.append(_finding(message=message))
        else:
            chosen[chip.name] = chip
    return tuple(chosen.values()), tuple(findings)


def engine_for(task: Task, *, chips: Sequence[str]) -> str:
    """The engine that does the task where nobody names one: the product's own, else the first by name.

    Those that run on the first chip, or on one that its word means, come before all others. Where none does the
    task at all, the product's own is named, so that the refusal says so.
    """
    names = sorted(registry.engine_names(), key=lambda name: (name != PREFERRED, name))
    able = [name for name in names if task in registry.engine(name).tasks]
    preferred = _meant_by(chips[0]) if chips else ()
    running = (
        name
        for name in able
        if any(not registry.engine(name).runs_on(task, chip) for chip in preferred)
    )
    return next(running, able[0] if able else PREFERRED)


def _meant_by(word: str) -> Sequence[Chip]:
    """Whether the fleet has them or not."""
    chip = registry.chip_called(word)
    if chip is not None:
        return (chip,)
    return [chip for chip in registry.chips().values() if _meant(word, chip)]


def equal_chips(asked: Sequence[str], chips: Sequence[str]) -> int:
    """Number of the first of those chips that are equally good: a word stands for any of them, a name for one.

    Processors are never as good as accelerators.
    """
    if asked[0] not in {*WORDS, *_profiles()}:
        return 1
    known = (registry.chip_called(name) for name in chips)
    equal = takewhile(lambda chip: chip is not None and _equal_by(asked[0], chip), known)
    return max(1, sum(1 for _ in equal))


def _equal_by(word: str, chip: Chip) -> bool:
    return _meant(word, chip) and chip.kind is not ChipKind.CPU


def _in_fleet(word: str, *, engine: Engine, task: Task, free: Mapping[str, int]) -> list[Chip]:
    """Processors come last: whoever leaves the choice open wants an accelerator if there is one."""
    chips = [
        chip
        for chip in registry.chips().values()
        if chip.name in free and _meant(word, chip) and not engine.runs_on(task, chip)
    ]
    return sorted(chips, key=lambda chip: (chip.kind is ChipKind.CPU, -free[chip.name], chip.name))


def _none_found(word: str, *, engine: Engine, task: Task, free: Mapping[str, int]) -> str:
    known = registry.chips()
    there = [known[name] for name in free if name in known]
    meant = [chip for chip in there if _meant(word, chip)]
    if not meant:
        has = ", ".join(sorted(chip.name for chip in there)) or "no cards at all"
        return f"the fleet has no card that {word!r} means; it has {has}"
    reasons = "; ".join(f"{chip.name}: {engine.runs_on(task, chip)}" for chip in meant)
    return f"{engine.name} does not {task} on any card that {word!r} means ({reasons})"


def _meant(word: str, chip: Chip) -> bool:
    if chip.slice_of:
        return word == chip.slice_profile
    return word in (ANY, chip.kind.value)


def _profiles() -> frozenset[str]:
    return frozenset(chip.slice_profile for chip in registry.chips().values() if chip.slice_of)


def _finding(*, message: str) -> Finding:
    return Finding(field="chips", message=message)
