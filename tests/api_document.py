"""The OpenAPI document of the REST API, generated once for each process."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer


@cache
def api_document_json() -> bytes:
    document = SchemaGenerator().get_schema(request=None, public=True)
    rendered: bytes = OpenApiJsonRenderer().render(document, renderer_context={})
    return rendered


def api_document() -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(api_document_json())
    return parsed
