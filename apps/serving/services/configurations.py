"""What a revision of a deployment serves, and how; and everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from apps.models import selectors as registry_selectors
from apps.models.models import ModelVersion
from apps.serving.models import Revision
from apps.serving.selectors.engines import engine_best, engine_refusal
from controlplane.domain.accelerators import Chip, check_cards
from controlplane.domain.claims import MOST_CARDS
from controlplane.domain.fields import Finding
from controlplane.domain.models import Acceptance, ModelState
from controlplane.domain.serving_plans import architecture_of, check_serving_plan
from controlplane.ports import registry
from controlplane.ports.engines import Engine, ModelFacts, Task

MOST_REPLICAS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What one revision serves, and how."""

    model_version: ModelVersion
    #: Empty is the best that is installed for the first chip.
    engine: str = ""
    spec: Mapping[str, Any] = field(default_factory=dict)
    chips: tuple[str, ...] = ("cpu",)
    #: Cards of one replica.
    cards: int = 1

    @classmethod
    def of(cls, revision: Revision) -> Configuration:
        """What that revision serves, to be served once more."""
        return cls(
            model_version=revision.model_version,
            engine=revision.engine,
            spec=revision.spec,
            chips=tuple(revision.chips),
            cards=revision.cards,
        )

    def with_engine(self) -> Configuration:
        """The same with an engine, if its first chip is known."""
        chip = registry.chips().get(self.chips[0]) if self.chips else None
        if self.engine or chip is None:
            return self
        facts = registry_selectors.model_facts(self.model_version)
        return replace(self, engine=engine_best(chip=chip, model=facts))


def configuration_check(configuration: Configuration, *, replicas: int) -> tuple[Finding, ...]:
    """Everything wrong with it; empty means that it can be deployed."""
    wanted = configuration.with_engine()
    findings = [*_check_numbers(wanted, replicas=replicas), *_check_chips(wanted)]
    if any(finding.field == "chips" for finding in findings):
        return tuple(findings)
    findings += _check_engine(wanted)
    if not any(finding.field == "engine" for finding in findings):
        findings += _check_spec(wanted)
    # Several chips have much in common.
    return tuple(dict.fromkeys(findings))


def _check_numbers(configuration: Configuration, *, replicas: int) -> Iterator[Finding]:
    version = configuration.model_version
    if version.state != ModelState.READY:
        yield Finding(field="model_version", message=f"{version} is {version.state}, not ready")
    if version.acceptance == Acceptance.REJECTED:
        message = (
            f"{version} is not accepted ({version.acceptance_reason}); accept it, or choose another"
        )
        yield Finding(field="model_version", message=message)
    if not 1 <= replicas <= MOST_REPLICAS:
        yield Finding(field="replicas", message=f"must be 1 to {MOST_REPLICAS}, got {replicas}")
    if not 1 <= configuration.cards <= MOST_CARDS:
        yield Finding(
            field="cards", message=f"must be 1 to {MOST_CARDS}, got {configuration.cards}"
        )


def _check_chips(configuration: Configuration) -> Iterator[Finding]:
    known = registry.chips()
    unknown = [chip for chip in configuration.chips if chip not in known]
    if unknown or not configuration.chips:
        words = ", ".join(unknown) or "nothing"
        yield Finding(field="chips", message=f"{words} is no known chip; use {', '.join(known)}")
        return
    for name in configuration.chips:
        chip = known[name]
        if finding := check_cards(chip, configuration.cards):
            yield finding
        elif 0 < chip.cards_per_node < configuration.cards:
            yield Finding(
                field="cards",
                message=f"a replica stays on one node, and one of {chip.label} has {chip.cards_per_node} cards; "
                f"got {configuration.cards}",
            )


def _check_engine(configuration: Configuration) -> Iterator[Finding]:
    name, names = configuration.engine, registry.engine_names()
    serving = [each for each in names if Task.SERVE in registry.engine(each).tasks]
    if name not in names:
        message = f"no engine is called {name!r}; those that serve are {', '.join(serving)}"
        yield Finding(field="engine", message=message)
    elif name not in serving:
        message = f"{name} does not serve; those that do are {', '.join(serving)}"
        yield Finding(field="engine", message=message)
    else:
        yield from _check_places(configuration, registry.engine(name), serving=serving)


def _check_places(
    configuration: Configuration, engine: Engine, *, serving: list[str]
) -> Iterator[Finding]:
    for chip in _chips(configuration):
        if not (reason := engine_refusal(engine, chip=chip, model=None)):
            continue
        others = [
            each
            for each in serving
            if not engine_refusal(registry.engine(each), chip=chip, model=None)
        ]
        instead = f"; {', '.join(others)} would" if others else ""
        message = f"{engine.name} does not serve on {chip.name}: {reason}{instead}"
        yield Finding(field="engine", message=message)


def _check_spec(configuration: Configuration) -> Iterator[Finding]:
    engine = registry.engine(configuration.engine)
    facts = registry_selectors.model_facts(configuration.model_version)
    for chip in _chips(configuration):
        wrong = engine.check(Task.SERVE, configuration.spec, chip=chip, model=facts)
        yield from wrong or _check_plan(configuration, engine, chip=chip, model=facts)


def _check_plan(
    configuration: Configuration, engine: Engine, *, chip: Chip, model: ModelFacts
) -> tuple[Finding, ...]:
    group = engine.normalise(Task.SERVE, configuration.spec).get("parallel")
    if group is None or not 1 <= configuration.cards <= MOST_CARDS:
        return ()
    return check_serving_plan(
        group, cards=configuration.cards, architecture=architecture_of(model.config), chip=chip
    )


def _chips(configuration: Configuration) -> list[Chip]:
    known = registry.chips()
    return [known[name] for name in configuration.chips]
