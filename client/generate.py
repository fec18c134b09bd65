"""``python client/generate.py``: generate the typed API client from the product's OpenAPI document.

``--check`` generates nothing and exits with 1 if the committed code has another document, template or generator.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

_CLIENT = Path(__file__).resolve().parent
_ROOT = _CLIENT.parent
_TEMPLATES = _CLIENT / "templates"
_GENERATED = _CLIENT / "src" / "ninefold_client" / "generated"
_DIGEST = _GENERATED / "SOURCE_DIGEST"
_BIN = Path(sys.executable).parent
_METHODS = ("get", "post", "put", "patch", "delete")
#: Operations of programs on nodes, which have tokens of their own.
_INTERNAL_PREFIXES = ("/api/v1/attempts/", "/api/v1/gateway/")
#: Watches are in ``ninefold_client.watch``; generated functions return one response.
_WATCH_PARAMETERS = {"watch", "send_initial_events", "Last-Event-ID"}
#: Of streams and of calls by the server.
_UNUSED_SCHEMAS = ("WatchEvent", "WebhookEvent", "AlertWebhookEvent")
_REASON_FIELDS = {"code", "params", "message"}
_CONFIGURATION = {
    "package_name_override": "generated",
    "literal_enums": True,
    "generate_all_tags": False,
    "post_hooks": [],
}


def openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document of this checkout. Needs no database."""
    environ = os.environ | {"DJANGO_SETTINGS_MODULE": "config.settings.test"}
    command = [
        sys.executable,
        "-W",
        "ignore",
        "manage.py",
        "spectacular",
        "--format",
        "openapi-json",
    ]
    shown = subprocess.run(command, cwd=_ROOT, env=environ, check=True, stdout=subprocess.PIPE)
    document: dict[str, Any] = json.loads(shown.stdout)
    return document


def client_document(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document without what would bloat the client.

    Error responses become exceptions, a body keeps its first content type, reasons are one schema, and objects
    with declared fields have no others.
    """
    document.pop("webhooks", None)
    for name in _UNUSED_SCHEMAS:
        document["components"]["schemas"].pop(name, None)
    document["components"]["schemas"] = {
        name: _simplified(schema) for name, schema in document["components"]["schemas"].items()
    }
    document["components"]["schemas"] |= {"Reason": _REASON, "JsonObject": _JSON_OBJECT}
    document["paths"] = {
        path: {method: _simplified_operation(operation) for method, operation in item.items()}
        for path, item in document["paths"].items()
        if not path.startswith(_INTERNAL_PREFIXES)
    }
    return document


_REASON: dict[str, Any] = {
    "type": "object",
    "description": "A reason of a state: code, parameters and English message.",
    "properties": {
        "code": {"type": "string"},
        "params": {"type": "object", "additionalProperties": True},
        "message": {"type": "string"},
    },
    "required": ["code", "params", "message"],
    "additionalProperties": False,
}


_JSON_OBJECT: dict[str, Any] = {
    "type": "object",
    "description": "A JSON object whose fields the document does not declare.",
    "additionalProperties": True,
}


def _types(schema: dict[str, Any]) -> set[str]:
    declared = schema.get("type", ())
    return {declared} if isinstance(declared, str) else set(declared)


def _has_free_form(schema: dict[str, Any]) -> bool:
    """Whether it is an object of any fields, or of fields whose values have one of several simple types."""
    if "object" not in _types(schema) or schema.keys() & {"properties", "allOf", "oneOf", "anyOf"}:
        return False
    values = schema.get("additionalProperties")
    return values in ({}, True, None) or (isinstance(values, dict) and len(_types(values)) > 1)


def _reference(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    reference = {"$ref": f"#/components/schemas/{name}"}
    return {"oneOf": [reference, {"type": "null"}]} if "null" in _types(schema) else reference


def _simplified(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_simplified(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    fields = schema.get("properties")
    if isinstance(fields, dict) and set(fields) == _REASON_FIELDS:
        return _reference("Reason", schema)
    if _has_free_form(schema):
        return _reference("JsonObject", schema)
    simplified = {name: _simplified(part) for name, part in schema.items()}
    if isinstance(fields, dict) and fields:
        simplified["additionalProperties"] = False
    return simplified


def _simplified_operation(operation: dict[str, Any]) -> dict[str, Any]:
    operation = _simplified(operation)
    if "parameters" in operation:
        operation["parameters"] = [
            one for one in operation["parameters"] if one["name"] not in _WATCH_PARAMETERS
        ]
    operation["responses"] = {
        status: _with_one_content_type(response)
        for status, response in operation["responses"].items()
        if status.startswith("2")
    }
    if "requestBody" in operation:
        operation["requestBody"] = _with_one_content_type(operation["requestBody"])
    return operation


def _with_one_content_type(body: dict[str, Any]) -> dict[str, Any]:
    content = body.get("content") or {}
    return {**body, "content": dict(list(content.items())[:1])} if content else body


def source_digest(document: dict[str, Any]) -> str:
    """Return a digest of everything that the generated code depends on."""
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode())
    digest.update(version("openapi-python-client").encode())
    digest.update(json.dumps(_CONFIGURATION, sort_keys=True).encode())
    for template in sorted(_TEMPLATES.iterdir()):
        digest.update(template.name.encode() + template.read_bytes())
    return digest.hexdigest()


def generate(document: dict[str, Any], *, target: Path) -> None:
    """Write the generated package to ``target``, which is replaced."""
    with tempfile.TemporaryDirectory() as folder:
        source, configuration = Path(folder, "openapi.json"), Path(folder, "configuration.json")
        source.write_text(json.dumps(document), encoding="utf-8")
        configuration.write_text(json.dumps(_CONFIGURATION), encoding="utf-8")
        output = Path(folder, "generated")
        arguments = ["generate", "--path", source, "--config", configuration, "--meta", "none",
                     "--custom-template-path", _TEMPLATES, "--output-path", output,
                     "--fail-on-warning"]  # fmt: skip
        subprocess.run([_BIN / "openapi-python-client", *map(str, arguments)], check=True)
        for name in ("errors.py", "py.typed"):
            (output / name).unlink(missing_ok=True)
        subprocess.run([_BIN / "ruff", "check", "--quiet", "--isolated", "--fix", "--select", "F401,I,UP",
                        "--target-version", "py311", output], check=False)  # fmt: skip
        subprocess.run([_BIN / "ruff", "format", "--quiet", "--isolated", "--line-length", "100", output],
                       check=True)  # fmt: skip
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(output, target)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument(
        "--document", type=Path, help="an OpenAPI document (JSON) instead of this checkout's"
    )
    arguments = parser.parse_args()
    if arguments.document:
        document = json.loads(arguments.document.read_text(encoding="utf-8"))
    else:
        document = openapi_document()
    document = client_document(document)
    digest = source_digest(document)
    if arguments.check:
        if _DIGEST.is_file() and _DIGEST.read_text(encoding="utf-8").strip() == digest:
            return 0
        print(
            "client/src/ninefold_client/generated is stale: run `make client` and commit the result"
        )
        return 1
    generate(document, target=_GENERATED)
    _DIGEST.write_text(digest + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
