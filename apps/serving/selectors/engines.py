"""Which engine serves a model on a chip, and why another does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.fleet import selectors as fleet
from apps.models.selectors import catalog
from controlplane.domain.accelerators import Chip
from controlplane.domain.catalog import CatalogTask
from controlplane.domain.fields import Limit
from controlplane.ports import registry
from controlplane.ports.engines import Engine, FlagsChecked, ModelFacts, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChoice:
    """An installed engine that serves."""

    name: str
    title: str
    #: How far its arguments are known to be right.
    flags: FlagsChecked
    #: Empty if it serves there; otherwise the reason why not.
    why_not: str


def engine_choices(*, chip: Chip, model: ModelFacts | None) -> tuple[EngineChoice, ...]:
    """Every engine that serves: the best for the chip first, those that cannot serve there last."""
    engines = [registry.engine(name) for name in registry.engine_names()]
    choices = [
        (engine, engine_refusal(engine, chip=chip, model=model))
        for engine in engines
        if Task.SERVE in engine.tasks
    ]
    choices.sort(key=lambda choice: (bool(choice[1]), *_rank(choice[0], chip=chip)))
    return tuple(
        EngineChoice(
            name=engine.name,
            title=engine.profile().title,
            flags=engine.profile().flags,
            why_not=why_not,
        )
        for engine, why_not in choices
    )


def engine_best(*, chip: Chip, model: ModelFacts | None) -> str:
    """The name of the engine that serves the model on the chip unless somebody chooses another."""
    return engine_choices(chip=chip, model=model)[0].name


def engine_refusal(engine: Engine, *, chip: Chip, model: ModelFacts | None) -> str:
    """Why it does not serve the model on the chip; empty if it does."""
    reason = engine.runs_on(Task.SERVE, chip)
    if reason:
        return reason
    if engine.environment() is None and (clusters := fleet.clusters_without_images(chip.name)):
        names = ", ".join(clusters)
        return (
            f"{engine.profile().title} comes as an image, and the clusters with {chip.label} start no "
            f"containers ({names})"
        )
    if model is None or not model.format:
        return ""
    wrong = engine.check(Task.SERVE, {}, chip=chip, model=model)
    return next((finding.message for finding in wrong if finding.field == "model"), "")


def engine_limits(name: str, *, chip: Chip, model: ModelFacts | None) -> tuple[Limit, ...]:
    """Choices of its fields that are out of reach there."""
    return registry.engine(name).limits(Task.SERVE, chip=chip, model=model)


def _rank(engine: Engine, *, chip: Chip) -> Sequence[int | str]:
    """What serves most models of the catalog there, then what is measured, then what is checked, then by name."""
    profile = engine.profile()
    taken = catalog.models_taken(task=CatalogTask.SERVE, vendor=chip.vendor)
    unchecked = profile.flags is FlagsChecked.UNVERIFIED
    return (-taken.get(engine.name, 0), int(not profile.metrics), int(unchecked), engine.name)
