"""OpenAPI schemas of JSON values whose shape a type of the product declares: a dataclass or a ``TypedDict``.

``DeclaredField`` is a value of one such type. ``DeclaredByKindField`` is an object whose type depends on the
field ``kind`` beside it; ``spec_schemas.add_kind_schemas`` replaces the object with both by a ``oneOf`` with
``kind`` as its discriminator. The types are those that the code reads and writes, so that no schema is written a
second time. pydantic is imported when a schema is generated: that takes a fifth of a second, and most processes
generate none.

Objects whose keys are not fixed and whose values are of one type have fields of their own: ``NumbersField``,
``ScalarMapField`` and ``ProgressPointField``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, make_dataclass
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal, get_type_hints

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.utils import Direction, extend_schema_field
from rest_framework import serializers

from controlplane.web.spec_schemas import BY_KIND, COMPONENTS, DISCRIMINATOR


class DeclaredField(serializers.JSONField):
    """A JSON value of a type, for responses.

    :param declared: called when the schema is generated; the type.
    """

    def __init__(self, *, declared: Callable[[], Any], **options: Any) -> None:
        self.declared = declared
        super().__init__(**options)


class DeclaredByKindField(serializers.DictField):
    """An object of a type for each kind; the service checks what requests give.

    :param declared: called when the schema is generated; the type by kind.
    """

    def __init__(self, *, declared: Callable[[], Mapping[Any, Any]], **options: Any) -> None:
        self.declared = declared
        super().__init__(**options)


class DeclaredFieldSchema(OpenApiSerializerFieldExtension):
    target_class = DeclaredField

    def map_serializer_field(self, auto_schema: AutoSchema, direction: Direction) -> dict[str, Any]:
        return _registered_schema(
            self.target.declared(), auto_schema, strict=direction == "request"
        )


class DeclaredByKindFieldSchema(OpenApiSerializerFieldExtension):
    target_class = DeclaredByKindField

    def map_serializer_field(self, auto_schema: AutoSchema, direction: Direction) -> dict[str, Any]:
        strict = direction == "request"
        components = {
            str(kind): _registered_component(declared, auto_schema, strict=strict)
            for kind, declared in self.target.declared().items()
        }
        return {"type": "object", BY_KIND: components}


def tagged_union(kinds: Mapping[str, type], *, suffix: str) -> Any:
    """The union of those dataclasses, each with a field ``kind`` of its key in front.

    :param suffix: of the names of the components, beside the names of the dataclasses.
    """
    from pydantic import Field  # noqa: PLC0415

    tagged = [
        make_dataclass(
            f"{each.__name__}{suffix}",
            [(DISCRIMINATOR, Literal[kind]), *_field_types(each)],
            namespace={"__doc__": each.__doc__},
            kw_only=True,
        )
        for kind, each in kinds.items()
    ]
    return Annotated[reduce(or_, tagged), Field(discriminator=DISCRIMINATOR)]


def list_type(declared: Any) -> Any:
    """The type of lists of a type that is computed, which a type checker refuses between brackets."""
    return list.__class_getitem__(declared)


def _field_types(declaring: Any) -> list[tuple[str, Any]]:
    hints = get_type_hints(declaring)
    return [(each.name, hints[each.name]) for each in fields(declaring)]


def declared_schema(
    declared: Any, *, strict: bool = False
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The JSON schema of a type, and the components by name to which it refers.

    :param strict: for requests: objects have no other fields than those that are declared.
    """
    from pydantic import TypeAdapter  # noqa: PLC0415

    schema = TypeAdapter(declared).json_schema(
        mode="validation" if strict else "serialization",
        ref_template=f"{COMPONENTS}{{model}}{'Request' if strict else ''}",
    )
    components = {
        f"{name}{'Request' if strict else ''}": _tidied(part, strict=strict)
        for name, part in schema.pop("$defs", {}).items()
    }
    return _tidied(schema, strict=strict), components


def _registered_schema(declared: Any, auto_schema: AutoSchema, *, strict: bool) -> dict[str, Any]:
    schema, components = declared_schema(declared, strict=strict)
    for name, component in components.items():
        _register(name, component, auto_schema)
    if "properties" in schema and isinstance(declared, type):
        return {
            "$ref": f"{COMPONENTS}{_registered_component(declared, auto_schema, strict=strict)}"
        }
    return schema


def _registered_component(declared: Any, auto_schema: AutoSchema, *, strict: bool) -> str:
    """The name of the component of a class."""
    schema, components = declared_schema(declared, strict=strict)
    name = f"{declared.__name__}{'Request' if strict else ''}"
    if schema == {"$ref": f"{COMPONENTS}{name}"}:
        schema = components[name]
    for each, component in {**components, name: schema}.items():
        _register(each, component, auto_schema)
    return name


def _register(name: str, schema: dict[str, Any], auto_schema: AutoSchema) -> None:
    """:raises TypeError: if another schema has the name."""
    component = ResolvedComponent(
        name=name, type=ResolvedComponent.SCHEMA, object=name, schema=schema
    )
    if component in auto_schema.registry:
        known = auto_schema.registry[component].schema
        if known != schema:
            raise TypeError(f"two schemas are called {name}; rename one of their types")
        return
    auto_schema.registry.register_on_missing(component)


def _tidied(schema: Any, *, strict: bool) -> Any:
    """Without titles, which repeat the names; in responses also without defaults, which nobody sends, and open.

    An object without any field stays closed.
    """
    if isinstance(schema, list):
        return [_tidied(part, strict=strict) for part in schema]
    if not isinstance(schema, dict):
        return schema
    tidied = {
        name: _tidied(part, strict=strict)
        for name, part in schema.items()
        if name not in ("title", "properties") and (strict or name != "default")
    }
    if "properties" in schema:
        tidied["properties"] = {
            name: _tidied(part, strict=strict) for name, part in schema["properties"].items()
        }
        if strict:
            tidied.setdefault("additionalProperties", False)
        elif tidied["properties"] and tidied.get("additionalProperties") is False:
            del tidied["additionalProperties"]
    return tidied


@extend_schema_field({"type": "object", "additionalProperties": {"type": ["number", "null"]}})
class NumbersField(serializers.DictField):
    """Numbers by name, such as metrics; null where a value could not be computed."""


@extend_schema_field(
    {
        "type": "object",
        "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
    }
)
class ScalarMapField(serializers.DictField):
    """Text, numbers and booleans by name."""


@extend_schema_field(
    {
        "type": "object",
        "properties": {
            "step": {"type": "integer"},
            "total_steps": {"type": "integer", "minimum": 0},
            "checkpoint": {
                "type": "object",
                "properties": {
                    "step": {"type": "integer"},
                    "upload_error": {
                        "type": "string",
                        "description": "Why the checkpoint is not in the artifact store.",
                    },
                },
            },
        },
        "additionalProperties": {"type": ["number", "null"]},
    }
)
class ProgressPointField(serializers.DictField):
    """A point of the progress of an attempt: a step and the metrics at that step, or a checkpoint."""
