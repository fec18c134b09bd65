"""What the installed engines can be asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controlplane.domain.fields import Field
from controlplane.ports import registry as ports
from controlplane.ports.engines import Engine


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
    #: Of the software environment that it runs in; empty where it comes as an image only.
    environment: str
    tasks: dict[str, tuple[FieldDescription, ...]]


def engines() -> list[EngineDescription]:
    """Every installed engine."""
    return [_engine(ports.engine(name)) for name in ports.engine_names()]


def _engine(engine: Engine) -> EngineDescription:
    environment = engine.environment()
    return EngineDescription(
        name=engine.name,
        environment=environment.name if environment else "",
        tasks={
            task.value: _fields(engine.fields(task), engine.normalise(task, {}))
            for task in sorted(engine.tasks)
        },
    )


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
