"""What the installed engines can be asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
    #: Of the software environment that it runs in.
    environment: str
    tasks: dict[str, tuple[FieldDescription, ...]]


def engines() -> list[EngineDescription]:
    """Every installed engine. An engine that describes no fields takes what its ``check`` accepts."""
    return [_engine(ports.engine(name)) for name in ports.engine_names()]


def _engine(engine: Engine) -> EngineDescription:
    described = getattr(engine, "fields", None)
    return EngineDescription(
        name=engine.name,
        environment=engine.environment().name,
        tasks={
            task.value: _fields(described(task), engine.normalise(task, {})) if described else ()
            for task in sorted(engine.tasks)
        },
    )


def _fields(fields: Sequence[Any], defaults: Mapping[str, Any]) -> tuple[FieldDescription, ...]:
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
