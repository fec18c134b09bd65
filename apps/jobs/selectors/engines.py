"""What the installed engines can be asked for, in which images, and what they cannot do where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controlplane.domain.accelerators import Chip
from controlplane.domain.fields import Field, Limit
from controlplane.ports import registry as ports
from controlplane.ports.engines import Engine, FlagsChecked, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDescription:
    """One field of an engine's spec, for forms and readers of the API."""

    name: str
    label: str
    help: str
    kind: str
    #: It has no default.
    required: bool
    default: Any
    least: float | None
    most: float | None
    choices: tuple[str, ...]
    #: Of a group.
    fields: tuple[FieldDescription, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDescription:
    name: str
    title: str
    #: Of the software environment that it runs in; empty where it comes as an image only.
    environment: str
    #: As a PEP 440 specifier; empty where it is part of this product.
    versions: str
    default_version: str
    flags: FlagsChecked
    formats: tuple[str, ...]
    #: The product's names of figures → its series.
    metrics: Mapping[str, str]
    #: By chip, as they are written down.
    images: Mapping[str, str]
    #: Names of the chips on which it does each task.
    chips: Mapping[str, tuple[str, ...]]
    remarks: tuple[str, ...]
    sources: tuple[str, ...]
    tasks: dict[str, tuple[FieldDescription, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Chips on which an engine does a task from the same image, or does not for the same reason."""

    chips: tuple[Chip, ...]
    #: Empty where it needs none.
    image: str
    #: Empty where it does it.
    why_not: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restriction:
    """Choices of a field that cannot be had."""

    #: Its label, after that of its group.
    label: tuple[str, ...]
    values: tuple[Any, ...]
    reason: str
    #: Empty means wherever it runs.
    chips: tuple[Chip, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """What an engine makes of one task."""

    task: Task
    runs: tuple[Place, ...]
    does_not_run: tuple[Place, ...]
    restrictions: tuple[Restriction, ...]

    @property
    def count(self) -> int:
        """Of the chips on which it runs."""
        return sum(len(place.chips) for place in self.runs)


def engines() -> list[EngineDescription]:
    """Every installed engine."""
    return [_engine(ports.engine(name)) for name in ports.engine_names()]


def engine_described(name: str) -> EngineDescription | None:
    """The engine of that name; None if none is installed."""
    return _engine(ports.engine(name)) if name in ports.engine_names() else None


def engine_tasks(name: str) -> list[TaskView]:
    """Where it does each of its tasks, and what it cannot do of it.

    :raises controlplane.ports.registry.UnknownAdapter: if no engine of that name is installed.
    """
    engine = ports.engine(name)
    return [_task(engine, task) for task in sorted(engine.tasks)]


def _engine(engine: Engine) -> EngineDescription:
    environment, profile = engine.environment(), engine.profile()
    known = ports.chips().values()
    images = {
        chip.name: ports.image_template(profile, engine=engine.name, chip=chip) for chip in known
    }
    return EngineDescription(
        name=engine.name,
        title=profile.title,
        environment=environment.name if environment else "",
        versions=profile.versions,
        default_version=profile.default_version,
        flags=profile.flags,
        formats=tuple(sorted(profile.formats)),
        metrics=dict(profile.metrics),
        images={name: image for name, image in images.items() if image},
        chips={
            task.value: tuple(chip.name for chip in known if not engine.runs_on(task, chip))
            for task in sorted(engine.tasks)
        },
        remarks=profile.remarks,
        sources=profile.sources,
        tasks={
            task.value: _fields(engine.fields(task), engine.normalise(task, {}))
            for task in sorted(engine.tasks)
        },
    )


def _task(engine: Engine, task: Task) -> TaskView:
    profile = engine.profile()
    runs: dict[str, list[Chip]] = {}
    refused: dict[str, list[Chip]] = {}
    for chip in ports.chips().values():
        if why_not := engine.runs_on(task, chip):
            # A reason names its chip; what is said of several is one reason.
            refused.setdefault(why_not.replace(chip.label, "…"), []).append(chip)
        else:
            image = ports.image_template(profile, engine=engine.name, chip=chip)
            runs.setdefault(image, []).append(chip)
    return TaskView(
        task=task,
        runs=tuple(
            Place(chips=tuple(chips), image=image, why_not="") for image, chips in runs.items()
        ),
        does_not_run=tuple(
            Place(
                chips=tuple(chips),
                image="",
                why_not=why_not if len(chips) > 1 else why_not.replace("…", chips[0].label),
            )
            for why_not, chips in refused.items()
        ),
        restrictions=tuple(
            _restrictions(engine, task, chips=[chip for chips in runs.values() for chip in chips])
        ),
    )


def _restrictions(engine: Engine, task: Task, *, chips: Sequence[Chip]) -> list[Restriction]:
    """Each once, with the chips that it is true of."""
    table = engine.fields(task)
    found: dict[tuple[Any, ...], tuple[Limit, list[Chip]]] = {}
    for chip in chips:
        for limit in engine.limits(task, chip=chip, model=None):
            reason = limit.reason.replace(chip.label, "…")
            key = (limit.field, limit.values, reason)
            found.setdefault(key, (limit, []))[1].append(chip)
    return [
        Restriction(
            label=_label(table, limit.field),
            values=limit.values,
            reason=limit.reason if len(where) == 1 else reason,
            chips=() if len(where) == len(chips) else tuple(where),
        )
        for (_field, _values, reason), (limit, where) in found.items()
    ]


def _label(table: Sequence[Field], path: str) -> tuple[str, ...]:
    name, _, rest = path.partition(".")
    field = next((each for each in table if each.name == name), None)
    if field is None:
        return (path,)
    return (field.label, *_label(field.fields, rest)) if rest else (field.label,)


def _fields(fields: Sequence[Field], defaults: Mapping[str, Any]) -> tuple[FieldDescription, ...]:
    return tuple(
        FieldDescription(
            name=field.name,
            label=field.label,
            help=field.help,
            kind=str(field.kind),
            # The engine fills what it knows a default for.
            required=field.name not in defaults,
            default=defaults.get(field.name),
            least=field.least,
            most=field.most,
            choices=field.choices,
            fields=_fields(field.fields, defaults.get(field.name) or {}),
        )
        for field in fields
    )
