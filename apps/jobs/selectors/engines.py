"""Installed engines: fields of their specs, images, supported chips and restrictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.reasons import replace_in_reason
from controlplane.domain.common.spec_fields import FieldLimit, SpecField
from controlplane.ports import adapter_registry as ports
from controlplane.ports.engines import ArgumentVerification, Engine, EngineTask


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDescription:
    name: str
    title: str
    #: Name of its software environment; empty if it is available as an image only.
    environment: str
    #: PEP 440 specifier; empty for the engine that is part of Ninefold.
    versions: str
    default_version: str
    flags: ArgumentVerification
    formats: tuple[str, ...]
    #: Ninefold's names of metrics → series of the engine.
    metrics: Mapping[str, str]
    #: Image templates by chip.
    images: Mapping[str, str]
    #: Names of supported chips by task.
    chips: Mapping[str, tuple[str, ...]]
    remarks: tuple[str, ...]
    sources: tuple[str, ...]
    #: Fields of the spec by task, as ``EngineFieldSerializer`` of the API has them.
    tasks: dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSupport:
    """Chips on which an engine runs a task from the same image, or does not run it for the same reason."""

    chips: tuple[Chip, ...]
    #: Empty if it needs none.
    image: str
    #: Why it does not run there; empty if it does.
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFieldRestriction:
    """Values of a field that are not available."""

    #: Labels of its group and of the field.
    label: tuple[str, ...]
    values: tuple[Any, ...]
    reason: str
    #: Empty means all supported chips.
    chips: tuple[Chip, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTaskSupport:
    task: EngineTask
    runs: tuple[EngineSupport, ...]
    does_not_run: tuple[EngineSupport, ...]
    restrictions: tuple[EngineFieldRestriction, ...]

    @property
    def count(self) -> int:
        """Number of supported chips."""
        return sum(len(support.chips) for support in self.runs)


def installed_engine_descriptions() -> list[EngineDescription]:
    return [_describe_engine(ports.engine_by_name(name)) for name in ports.engine_names()]


def engine_description(name: str) -> EngineDescription | None:
    """The engine of that name; None if it is not installed."""
    return _describe_engine(ports.engine_by_name(name)) if name in ports.engine_names() else None


def engine_task_support(name: str) -> list[EngineTaskSupport]:
    """Supported chips and restrictions of an engine by task.

    :raises controlplane.ports.adapter_registry.AdapterNotFound: if no engine of that name is installed.
    """
    engine = ports.engine_by_name(name)
    return [_describe_task(engine, task) for task in sorted(engine.tasks)]


def _describe_engine(engine: Engine) -> EngineDescription:
    environment, profile = engine.environment(), engine.profile()
    known = ports.all_chips().values()
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
            task.value: tuple(
                chip.name for chip in known if not engine.unsupported_reason(task, chip)
            )
            for task in sorted(engine.tasks)
        },
        remarks=profile.remarks,
        sources=profile.sources,
        tasks={
            task.value: _describe_fields(engine.fields(task), engine.normalise(task, {}))
            for task in sorted(engine.tasks)
        },
    )


def _describe_task(engine: Engine, task: EngineTask) -> EngineTaskSupport:
    profile = engine.profile()
    runs: dict[str, list[Chip]] = {}
    refused: dict[str, list[Chip]] = {}
    for chip in ports.all_chips().values():
        if reason := engine.unsupported_reason(task, chip):
            # Reasons contain the label of the chip; without it, equal reasons are grouped.
            refused.setdefault(replace_in_reason(reason, chip.label, "…"), []).append(chip)
        else:
            image = ports.image_template(profile, engine=engine.name, chip=chip)
            runs.setdefault(image, []).append(chip)
    return EngineTaskSupport(
        task=task,
        runs=tuple(
            EngineSupport(chips=tuple(chips), image=image, reason="")
            for image, chips in runs.items()
        ),
        does_not_run=tuple(
            EngineSupport(
                chips=tuple(chips),
                image="",
                reason=reason if len(chips) > 1 else replace_in_reason(reason, "…", chips[0].label),
            )
            for reason, chips in refused.items()
        ),
        restrictions=tuple(
            _field_restrictions(
                engine, task, chips=[chip for chips in runs.values() for chip in chips]
            )
        ),
    )


def _field_restrictions(
    engine: Engine, task: EngineTask, *, chips: Sequence[Chip]
) -> list[EngineFieldRestriction]:
    """Each restriction once, with the chips that it applies to."""
    table = engine.fields(task)
    found: dict[tuple[Any, ...], tuple[FieldLimit, list[Chip]]] = {}
    for chip in chips:
        for limit in engine.limits(task, chip=chip, model=None):
            reason = replace_in_reason(limit.reason, chip.label, "…")
            key = (limit.field, limit.values, reason)
            found.setdefault(key, (limit, []))[1].append(chip)
    return [
        EngineFieldRestriction(
            label=_field_label_path(table, limit.field),
            values=limit.values,
            reason=limit.reason if len(where) == 1 else reason,
            chips=() if len(where) == len(chips) else tuple(where),
        )
        for (_field, _values, reason), (limit, where) in found.items()
    ]


def _field_label_path(table: Sequence[SpecField], path: str) -> tuple[str, ...]:
    name, _, rest = path.partition(".")
    field = next((each for each in table if each.name == name), None)
    if field is None:
        return (path,)
    return (field.label, *_field_label_path(field.fields, rest)) if rest else (field.label,)


def _describe_fields(
    fields: Sequence[SpecField], defaults: Mapping[str, Any]
) -> list[dict[str, Any]]:
    copied = ("name", "label", "help", "kind", "least", "most", "choices")
    return [
        {
            **{name: getattr(field, name) for name in copied},
            # ``normalise`` sets every field that has a default.
            "required": field.name not in defaults,
            "default": defaults.get(field.name),
            "fields": _describe_fields(field.fields, defaults.get(field.name) or {}),
        }
        for field in fields
    ]
