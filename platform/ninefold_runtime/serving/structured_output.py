"""``response_format`` or ``text.format`` as a grammar, in the Lark notation of llguidance."""

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


def parse_format(value: Any, *, param: str, schema_in: str = "") -> str | None:
    """The grammar of the answer; None for text.

    :param param: name of the field.
    :param schema_in: the object of the format in which the schema is; empty if it is in the format itself.
    :raises RequestRejected: naming the field that is wrong.
    """
    if value is None:
        return None
    kind = value.get("type") if isinstance(value, dict) else None
    if kind not in _TYPES:
        raise RequestRejected(
            f"{param}.type must be one of {', '.join(_TYPES)}, not {kind!r}", param=param
        )
    if kind == "text":
        return None
    if kind == "json_object":
        return json_rule("start", {"type": "object"})
    described = value.get(schema_in) if schema_in else value
    schema = described.get("schema") if isinstance(described, dict) else None
    if not isinstance(schema, dict):
        at = f"{param}.{schema_in}" if schema_in else param
        raise RequestRejected(f"{at}.schema must be a JSON schema", param=param)
    return json_rule("start", schema)
