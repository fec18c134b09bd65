"""OpenAPI schemas of specs, generated from the field tables of the installed engines.

A request or response with a spec declares ``EngineSpecField`` and the task of each ``kind`` of the object. The
hook ``add_kind_schemas`` then replaces the object by a ``oneOf`` with ``kind`` as its discriminator::

    JobSubmitRequest → FinetuneJobSubmitRequest | EvaluateJobSubmitRequest | QuantizeJobSubmitRequest | …
                       each with ``spec`` of FinetuneSpecRequest, EvaluateSpecRequest, …

``FinetuneSpecRequest`` has the fields of all engines that fine-tune, so an option of a new engine is in the schema
once its package is installed. Requests state limits and choices and refuse unknown fields. Responses state only
types: a stored spec is as old as its job, and may have an option or a choice that no engine offers any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import Direction
from rest_framework import serializers

from controlplane.domain.common.spec_fields import FieldKind, RequiredField, SpecField
from controlplane.domain.specs.sizing import SIZING
from controlplane.domain.specs.training import TINY_RECIPE
from controlplane.ports import adapter_registry
from controlplane.ports.engines import EngineTask

#: Where fields leave for ``add_kind_schemas`` what they are by kind, or always, under the empty kind: the name of
#: a component, or the arguments of ``_spec_component``. Absent from the published document.
BY_KIND = "x-by-kind"
DISCRIMINATOR = "kind"
COMPONENTS = "#/components/schemas/"
#: Defaults of these depend on the model and the method; a generated client that sends them would override that.
_DEFAULTS_OF_MODEL = frozenset(TINY_RECIPE)
_JSON_TYPES: Mapping[FieldKind, str] = {
    FieldKind.INTEGER: "integer",
    FieldKind.NUMBER: "number",
    FieldKind.TEXT: "string",
    FieldKind.CHOICE: "string",
    FieldKind.CHOICES: "array",
    FieldKind.TEXTS: "array",
    FieldKind.VARIABLES: "object",
    FieldKind.GROUP: "object",
}


class EngineSpecField(serializers.DictField):
    """A spec: an object with the fields of an engine, which the service validates.

    :param tasks: the task whose fields it has, or the task for each value of the field ``kind`` beside it.
    """

    def __init__(self, *, tasks: EngineTask | Mapping[str, EngineTask], **options: Any) -> None:
        self.tasks = tasks
        super().__init__(**options)


class SizingSpecField(serializers.DictField):
    """Inputs of the sizing calculator, which the service validates."""


class EngineSpecFieldSchema(OpenApiSerializerFieldExtension):
    target_class = EngineSpecField

    def map_serializer_field(self, auto_schema: AutoSchema, direction: Direction) -> dict[str, Any]:
        tasks = self.target.tasks
        by_kind = {"": tasks} if isinstance(tasks, EngineTask) else tasks
        strict = direction == "request"
        return {"type": "object", BY_KIND: {kind: (task, strict) for kind, task in by_kind.items()}}


class SizingSpecFieldSchema(OpenApiSerializerFieldExtension):
    target_class = SizingSpecField

    def map_serializer_field(self, auto_schema: AutoSchema, direction: Direction) -> dict[str, Any]:
        return _object_schema(SIZING, strict=direction == "request")


def add_kind_schemas(result: dict[str, Any], **_more: Any) -> dict[str, Any]:
    """Replace each marked object by the schemas of its kinds; a postprocessing hook of drf-spectacular.

    After the hook that names enums, which would take those out of specs.
    """
    schemas: dict[str, Any] = result["components"].setdefault("schemas", {})
    for name, schema in list(schemas.items()):
        for field, described in schema.get("properties", {}).items():
            marked = described.pop(BY_KIND, None)
            if marked is None:
                continue
            references = {
                kind: f"{COMPONENTS}{each if isinstance(each, str) else _spec_component(each, schemas)}"
                for kind, each in marked.items()
            }
            if DISCRIMINATOR in schema["properties"] and "" not in references:
                schemas[name] = _kind_variants(name, field, references, schemas)
                break
            distinct = [{"$ref": each} for each in dict.fromkeys(references.values())]
            value = distinct[0] if "" in references else {"anyOf": distinct}
            schema["properties"][field] = with_annotations(value, described)
            break
    result["components"]["schemas"] = dict(sorted(schemas.items()))
    return result


def _kind_variants(
    name: str, field: str, references: Mapping[str, str], schemas: dict[str, Any]
) -> dict[str, Any]:
    """Add one component for each kind; return their union.

    :param references: by kind, to the component of the field in objects of the kind.
    """
    whole = schemas[name]
    mapping = {}
    for kind, reference in references.items():
        only = {"type": "string", "enum": [kind]}
        properties = {
            **whole["properties"],
            DISCRIMINATOR: with_annotations(only, whole["properties"][DISCRIMINATOR]),
            field: with_annotations({"$ref": reference}, whole["properties"][field]),
        }
        variant = f"{''.join(part.title() for part in kind.split('_'))}{name}"
        schemas[variant] = {**whole, "properties": properties}
        mapping[kind] = f"{COMPONENTS}{variant}"
    union: dict[str, Any] = {
        "oneOf": [{"$ref": reference} for reference in mapping.values()],
        "discriminator": {"propertyName": DISCRIMINATOR, "mapping": mapping},
    }
    return with_annotations(union, whole)


def with_annotations(schema: dict[str, Any], described: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with what the serializer says of the field, and null where it may be null."""
    if "null" in described.get("type", ()):
        schema = {"oneOf": [schema, {"type": "null"}]}
    copied = ("description", "readOnly", "writeOnly", "title")
    return {**schema, **{name: described[name] for name in copied if name in described}}


def _spec_component(spec: tuple[EngineTask, bool], schemas: dict[str, Any]) -> str:
    """Name of the component with the fields of all engines for the task; it is added if it is missing.

    :param spec: the task, and whether it is the spec of a request.
    """
    task, strict = spec
    name = f"{task.value.title()}Spec{'Request' if strict else ''}"
    if name not in schemas:
        fields, engines = engine_fields(task)
        of_model = _DEFAULTS_OF_MODEL if task is EngineTask.FINETUNE else frozenset[str]()
        schemas[name] = {
            **_object_schema(fields, engines=engines, strict=strict, without_default=of_model),
            "description": f"Fields of the engines with the task {task.value}.",
        }
    return name


def engine_fields(
    task: EngineTask,
) -> tuple[tuple[SpecField, ...], Mapping[str, tuple[str, ...]]]:
    """The fields of all installed engines for the task, and by name the engines that have each.

    Where two engines declare a field differently, the schema admits what either does.
    """
    merged: dict[str, SpecField] = {}
    engines: dict[str, list[str]] = {}
    for engine in map(adapter_registry.engine_by_name, adapter_registry.engine_names()):
        for field in engine.fields(task) if task in engine.tasks else ():
            known = merged.get(field.name)
            merged[field.name] = field if known is None else _widest(known, field)
            engines.setdefault(field.name, []).append(engine.name)
    return tuple(merged.values()), {name: tuple(names) for name, names in engines.items()}


def _widest(one: SpecField, other: SpecField) -> SpecField:
    """A field that admits what either admits.

    :raises TypeError: if they are of different kinds.
    """
    if one == other:
        return one
    if one.kind is not other.kind:
        message = (
            f"engines declare {one.name} as {one.kind} and as {other.kind}; rename one of them"
        )
        raise TypeError(message)
    parts = {field.name: field for field in one.fields}
    for field in other.fields:
        parts[field.name] = _widest(parts[field.name], field) if field.name in parts else field
    return SpecField(
        name=one.name,
        label=one.label,
        help=one.help,
        kind=one.kind,
        default=one.default if one.default == other.default else None,
        least=_outer(min, one.least, other.least),
        most=_outer(max, one.most, other.most),
        above_least=one.above_least and other.above_least,
        choices=tuple(dict.fromkeys((*one.choices, *other.choices))),
        optional=one.optional or other.optional,
        fields=tuple(parts.values()),
    )


def _outer(choose: Any, one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else choose(one, other)


def _object_schema(
    fields: Iterable[SpecField],
    *,
    strict: bool,
    engines: Mapping[str, Sequence[str]] = MappingProxyType({}),
    without_default: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """The schema of an object with those fields."""
    listed = tuple(fields)
    installed = {name for names in engines.values() for name in names}
    properties = {}
    for field in listed:
        schema = _field_schema(field, strict=strict)
        if field.name in without_default and "default" in schema:
            del schema["default"]
            schema["description"] += " The default depends on the method and the model."
        of_engines = engines.get(field.name, ())
        if installed.difference(of_engines):
            schema["x-engines"] = list(of_engines)
        properties[field.name] = schema
    described: dict[str, Any] = {"type": "object", "properties": properties}
    if strict:
        described["additionalProperties"] = False
        required = [
            field.name
            for field in listed
            if isinstance(field.default, RequiredField) and field.kind is not FieldKind.GROUP
        ]
        if required:
            described["required"] = required
    return described


def _field_schema(field: SpecField, *, strict: bool) -> dict[str, Any]:
    schema: dict[str, Any]
    if field.kind is FieldKind.GROUP:
        schema = _object_schema(field.fields, strict=strict)
    else:
        schema = {"type": _JSON_TYPES[field.kind]}
    if field.kind is FieldKind.VARIABLES:
        schema["additionalProperties"] = {"type": "string"}
    if field.kind in (FieldKind.CHOICES, FieldKind.TEXTS):
        schema["items"] = {"type": "string"}
    if strict:
        _add_limits(schema, field)
    if field.optional or field.kind is FieldKind.GROUP or not strict:
        schema["type"] = [schema["type"], "null"]
        if "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
    return {**schema, "title": field.label, "description": field.help}


def _add_limits(schema: dict[str, Any], field: SpecField) -> None:
    """Add what ``controlplane.domain.common.spec_fields.check_fields`` checks, and the default."""
    match field.kind:
        case FieldKind.TEXT:
            schema["minLength"] = 1
        case FieldKind.CHOICE:
            schema["enum"] = list(field.choices)
        case FieldKind.CHOICES:
            schema |= {"items": {"type": "string", "enum": list(field.choices)}, "minItems": 1}
            schema["uniqueItems"] = True
        case FieldKind.TEXTS:
            schema |= {"items": {"type": "string", "minLength": 1}, "minItems": 1}
        case FieldKind.INTEGER | FieldKind.NUMBER:
            schema |= _number_limits(field)
    if not isinstance(field.default, RequiredField):
        schema["default"] = field.default


def _number_limits(field: SpecField) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    whole = field.kind is FieldKind.INTEGER
    if field.least is not None:
        least = int(field.least) if whole else field.least
        limits["exclusiveMinimum" if field.above_least else "minimum"] = least
    if field.most is not None:
        limits["maximum"] = int(field.most) if whole else field.most
    return limits
