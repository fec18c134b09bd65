"""``response_format`` as a grammar, in the Lark notation of llguidance."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ninefold_runtime.serving.request_fields import RequestRejected

_TYPES = ("text", "json_object", "json_schema")


def json_rule(name: str, schema: Mapping[str, Any]) -> str:
    """The rule ``name``: JSON that the schema accepts, without optional whitespace."""
    # A model that repeats itself would fill the rest of its answer with whitespace.
    compact = {**schema, "x-guidance": {"whitespace_flexible": False}}
    return f"{name}: %json {json.dumps(compact)}\n"


def parse_response_format(fields: Mapping[str, Any]) -> str | None:
    """The grammar of the answer; None for text.

    :raises RequestRejected: naming the field that is wrong.
    """
    value = fields.get("response_format")
    if value is None:
        return None
    kind = value.get("type") if isinstance(value, dict) else None
    if kind not in _TYPES:
        raise RequestRejected(
            f"response_format.type must be one of {', '.join(_TYPES)}, not {kind!r}",
            param="response_format",
        )
    if kind == "text":
        return None
    if kind == "json_object":
        return json_rule("start", {"type": "object"})
    described = value.get("json_schema")
    schema = described.get("schema") if isinstance(described, dict) else None
    if not isinstance(schema, dict):
        raise RequestRejected(
            "response_format.json_schema.schema must be a JSON schema", param="response_format"
        )
    return json_rule("start", schema)
