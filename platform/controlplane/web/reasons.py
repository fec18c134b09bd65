"""Reasons in the language of the reader, and as REST gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.translation import get_language, to_locale
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.domain.common.reasons import Parameter, Reason, fill_template
from controlplane.persistence.reasons import ENGLISH, ReasonField, reason_template

#: Between the reasons of a list, in languages that do not write "; ".
_SEPARATORS = {"zh_Hans": "；"}


def render_reason(reason: str) -> str:
    """Return the message in the current language; ordinary text is of foreign origin and remains as it is."""
    locale = to_locale(get_language() or ENGLISH)
    if locale == ENGLISH or not isinstance(reason, Reason):
        return reason
    template = reason_template(reason.code, locale=locale)
    if template is None:
        return reason
    params = {name: _render_parameter(value) for name, value in reason.params.items()}
    return fill_template(template, params, separator=_SEPARATORS.get(locale, "; "))


def _render_parameter(value: Parameter) -> Parameter:
    if isinstance(value, str):
        return render_reason(value)
    if isinstance(value, Sequence):
        return [render_reason(part) for part in value]
    return value


def reason_as_response_data(reason: str) -> dict[str, Any]:
    """Return ``{"code", "params", "message"}``; the code of text of foreign origin is empty."""
    if not isinstance(reason, Reason):
        return {"code": "", "params": {}, "message": reason}
    return {**reason.as_json(), "message": str(reason)}


#: By the name of its component: a reason as responses have it, and one among the parameters of another.
REASON_SCHEMAS: dict[str, Any] = {
    "Reason": {
        "type": "object",
        "description": "Why: a code for programs with its parameters, and the message for people.",
        "properties": {
            "code": {"type": "string", "description": "Empty for text of foreign origin."},
            "params": {"$ref": "#/components/schemas/ReasonParameters"},
            "message": {"type": "string", "description": "In English."},
        },
        "required": ["code", "params", "message"],
    },
    "NestedReason": {
        "type": "object",
        "properties": {
            "code": {"type": "string"},
            "params": {"$ref": "#/components/schemas/ReasonParameters"},
        },
        "required": ["code", "params"],
    },
    "ReasonParameters": {
        "type": "object",
        "description": "Scalars, reasons, or lists of them, by the names in the message template.",
        "additionalProperties": {
            "anyOf": [
                {"type": ["string", "number", "boolean", "null"]},
                {"$ref": "#/components/schemas/NestedReason"},
                {
                    "type": "array",
                    "items": {
                        "anyOf": [
                            {"type": ["string", "number", "boolean", "null"]},
                            {"$ref": "#/components/schemas/NestedReason"},
                        ]
                    },
                },
            ]
        },
    },
}
_SCHEMA = {"$ref": "#/components/schemas/Reason"}


#: What a ``ModelSerializer`` derives from a JSON column for fields that are written.
_OF_INPUT = frozenset(
    {"allow_null", "decoder", "default", "encoder", "required", "style", "validators"}
)


@extend_schema_field(_SCHEMA)
class ReasonSerializerField(serializers.Field[Any, Any, Any, Any]):
    """A reason as ``{"code", "params", "message"}``; read only."""

    def __init__(self, **options: Any) -> None:
        shown = {name: value for name, value in options.items() if name not in _OF_INPUT}
        super().__init__(**{**shown, "read_only": True})

    def to_representation(self, value: str) -> dict[str, Any]:
        return reason_as_response_data(value)


serializers.ModelSerializer.serializer_field_mapping[ReasonField] = ReasonSerializerField
