"""Serializer fields of JSON objects whose keys are not fixed and whose values are of one type."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers


@extend_schema_field({"type": "object", "additionalProperties": {"type": ["number", "null"]}})
class NumbersField(serializers.DictField):
    """Numbers by name, such as metrics; null where a value could not be computed."""


@extend_schema_field(
    {
        "type": "object",
        "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
    }
)
class ScalarsField(serializers.DictField):
    """Text, numbers and booleans by name."""


@extend_schema_field(
    {
        "type": "object",
        "properties": {
            "step": {"type": "integer"},
            "total_steps": {"type": "integer", "minimum": 0},
            "checkpoint": {"type": "object", "properties": {"step": {"type": "integer"}}},
        },
        "additionalProperties": {"type": ["number", "null"]},
    }
)
class ProgressPointField(serializers.DictField):
    """A point of the progress of an attempt: a step and the metrics at that step, or a checkpoint."""
