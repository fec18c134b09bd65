from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from drf_spectacular.settings import spectacular_settings
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from rest_framework.test import APIClient

from tests import factories
from tests.functional.accounts.conftest import browser
from tests.functional.api.callers import API

ROOT = Path(__file__).parents[3]
MAIN_REQUESTS = (
    ("/api/v1/jobs", "post"),
    ("/api/v1/jobs/check", "post"),
    ("/api/v1/pipelines", "post"),
    ("/api/v1/deployments", "post"),
    ("/api/v1/keys", "post"),
    ("/api/v1/tokens", "post"),
    ("/api/v1/model-versions/import", "post"),
)


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file = tmp_path_factory.mktemp("schema") / "schema.json"
    call_command("spectacular", format="openapi-json", fail_on_warn=True, file=str(file))
    generated: dict[str, Any] = json.loads(file.read_text())
    return generated


def operations(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method} {path}", operation)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]


def test_the_schema_is_of_the_version_that_clients_read(schema: dict[str, Any]) -> None:
    assert schema["openapi"].startswith("3.1.")


# The validation takes longer than all other tests here; Spectral, too, is among the slow tests.
@pytest.mark.slow
def test_the_schema_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "schema.yaml"
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(file))
    assert file.read_text().startswith("openapi: 3.1")


def test_every_enumeration_that_settings_name_has_its_name(schema: dict[str, Any]) -> None:
    """A path that does not lead to choices any more is reported once per process, before the schema is made."""
    named = spectacular_settings.ENUM_NAME_OVERRIDES
    assert set(named) - set(schema["components"]["schemas"]) == set()


def test_every_operation_has_a_summary_one_tag_and_problems(schema: dict[str, Any]) -> None:
    known = {tag["name"] for tag in schema["tags"]}
    for name, operation in operations(schema):
        assert operation.get("summary"), name
        assert len(operation["tags"]) == 1, name
        assert operation["tags"][0] in known, name
        assert "application/problem+json" in operation["responses"]["default"]["content"], name


def test_every_post_of_a_person_takes_an_idempotency_key_unless_it_changes_nothing(
    schema: dict[str, Any],
) -> None:
    changes_nothing = {
        "/api/v1/jobs/check",
        "/api/v1/jobs/render",
        "/api/v1/pipelines/check",
        "/api/v1/datasets/inspect",
        "/api/v1/sizing",
        "/api/v1/claims/dry-run",
        "/api/v1/alert-rules/trial",
        "/api/v1/health-rules/dry-run",
    }
    for path, methods in schema["paths"].items():
        if "post" not in methods or path in changes_nothing or "/attempts/{uid}/" in path:
            continue
        names = [parameter["name"] for parameter in methods["post"].get("parameters", [])]
        assert "Idempotency-Key" in names, path


def test_main_requests_have_examples(schema: dict[str, Any]) -> None:
    for path, method in MAIN_REQUESTS:
        content = schema["paths"][path][method]["requestBody"]["content"]
        assert content["application/json"]["examples"], path


def test_examples_fit_their_schemas(schema: dict[str, Any]) -> None:
    """Those of requests and of responses, errors included."""
    faulty, checked = [], 0
    for name, operation in operations(schema):
        bodies = [("request", operation.get("requestBody", {})), *operation["responses"].items()]
        for where, body in bodies:
            content = body.get("content", {})
            for media_type, described in content.items():
                validator = Draft202012Validator(
                    {"components": schema["components"], **described.get("schema", {})}
                )
                for title, given in described.get("examples", {}).items():
                    shared = given.get("$ref", "").rpartition("/")[2]
                    example = schema["components"]["examples"][shared] if shared else given
                    checked += 1
                    faulty += [
                        f"{name} {where} {media_type} {title}: {error.json_path} {error.message}"
                        for error in validator.iter_errors(example["value"])
                    ]
    assert not faulty
    assert checked > 1000


def test_internal_addresses_are_not_described(schema: dict[str, Any]) -> None:
    assert not [path for path in schema["paths"] if "internal" in path or "gateway" in path]


@pytest.mark.django_db
def test_the_docs_page_runs_under_the_content_security_policy() -> None:
    page = browser(factories.user("reader")).get(f"{API}/docs", headers={"Accept": "text/html"})
    assert page.status_code == 200
    html = page.content.decode()
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", html, flags=re.DOTALL)
    assert scripts
    assert all("src=" in attributes and not content.strip() for attributes, content in scripts)
    assert not re.search(r"https?://(?!testserver)", html)
    policy = page["Content-Security-Policy"]
    assert "script-src 'self';" in f"{policy};"
    assert "style-src 'self' 'unsafe-inline'" in policy
    elsewhere = APIClient().get(f"{API}/me")["Content-Security-Policy"]
    assert "unsafe-inline" not in elsewhere


def test_the_schema_describes_the_retry_policy(schema: dict[str, Any]) -> None:
    policy = schema["components"]["schemas"]["RetryPolicy"]["properties"]
    assert (policy["max_retries"]["minimum"], policy["max_retries"]["maximum"]) == (0, 20)
    assert policy["backoff_seconds"]["default"] == 10
    assert policy["retry_on"]["items"]


def test_operations_document_the_problems_that_they_answer_with(schema: dict[str, Any]) -> None:
    jobs = schema["paths"]["/api/v1/jobs"]
    assert {"400", "401", "403", "409", "422", "429"} <= set(jobs["post"]["responses"])
    assert not {"404", "409", "422"} & set(jobs["get"]["responses"])
    for name, operation in operations(schema):
        assert {"401", "403", "429"} <= set(operation["responses"]), name
        assert "{" not in name or "404" in operation["responses"], name


def test_constraints_are_in_the_schema(schema: dict[str, Any]) -> None:
    schemas = schema["components"]["schemas"]
    submitted = schemas["FinetuneJobSubmitRequest"]
    assert submitted["additionalProperties"] is False
    assert submitted["properties"]["model_version"]["examples"] == ["qwen3-8b@3"]
    code = schemas["ScriptJobSubmitRequest"]["properties"]["code"]
    assert code["pattern"] == "^[0-9a-f]{32}$", "artifacts have no name"
    for name in ("ScriptJobSubmitRequest", "DeploymentCreateRequest", "DeployStepSubmitRequest"):
        cards = schemas[name]["properties"]["cards"]
        assert (cards["minimum"], cards["maximum"]) == (1, 1024), name
    for name in ("DeploymentCreateRequest", "DeploymentScaleRequest", "DeployStepSubmitRequest"):
        replicas = schemas[name]["properties"]["replicas"]
        assert (replicas["minimum"], replicas["maximum"]) == (1, 64), name
    assert schemas["ApiKeyCreateRequest"]["properties"]["concurrency"]["minimum"] == 1
    queue = schemas["QueueWriteRequest"]["properties"]
    assert queue["weight"]["exclusiveMinimum"] == 0
    assert (queue["max_running_per_user"]["minimum"], queue["name"]["maxLength"]) == (1, 60)
    sizes = [
        parameter["schema"]
        for _, operation in operations(schema)
        for parameter in operation.get("parameters", ())
        if parameter["name"] == "page_size"
    ]
    assert sizes
    assert all((size["minimum"], size["maximum"]) == (1, 200) for size in sizes)
    assert "nullable" not in str(schema), "OpenAPI 3.1 has the type null"


#: Lists that cannot be watched, and why; ``docs/rest-api.md`` names them.
UNWATCHED = {
    "/api/v1/catalog": "changes by an upgrade only",
    "/api/v1/chips": "of the installed plug-ins",
    "/api/v1/engines": "of the installed plug-ins",
    "/api/v1/model-versions/folders": "of the file system",
    "/api/v1/model-versions/{uid}/lineage": "computed",
    "/api/v1/usage": "computed",
    "/api/v1/usage/days": "computed: its rows are replaced by each sum",
}


def test_every_list_can_be_watched_or_is_named(schema: dict[str, Any]) -> None:
    unwatched = {
        path
        for path, item in schema["paths"].items()
        if item.get("get", {}).get("operationId", "").endswith("_list")
        and "watch" not in {each["name"] for each in item["get"].get("parameters", ())}
    }
    assert unwatched == UNWATCHED.keys()
    page = (ROOT / "docs" / "rest-api.md").read_text(encoding="utf-8")
    missing = {path for path in UNWATCHED if path.removeprefix("/api/v1") not in page}
    assert missing == set()


#: Objects and values that the document leaves open, and why.
FREE_FORM = {
    "Audit.detail": "each of about 200 actions records details of its own, and old entries keep theirs",
    "LocalClusterOptions.artifacts": "options of the artifact store of the installation, which a package may add",
    "SimulatedClusterOptions.fleet": "a file of docs/simulated-cluster.md; REST cannot register such a cluster",
    "SizingRequestRequest.config": "a config.json as its authors wrote it",
    "WatchEvent.object": "an object of whichever list is watched",
}
_TYPE_KEYWORDS = ("$ref", "allOf", "anyOf", "oneOf", "enum", "const", "type")


def free_form_fields(schema: Any, *, path: str) -> set[str]:
    """Paths of objects without declared fields or type of their values, and of values without a type."""
    if not isinstance(schema, dict):
        return set()
    if not schema.keys() & set(_TYPE_KEYWORDS):
        return {path}
    found = set()
    declared = schema.get("type", ())
    values = schema.get("additionalProperties")
    composed = schema.keys() & {"allOf", "anyOf", "oneOf"}
    is_object = "object" in ([declared] if isinstance(declared, str) else declared)
    is_open = values in (True, {}) or (values is None and not schema.get("properties"))
    if is_object and is_open and not composed:
        found.add(path)
    if isinstance(values, dict) and values:
        found |= free_form_fields(values, path=f"{path}.*")
    if "items" in schema or declared == "array":
        found |= free_form_fields(schema.get("items", {}), path=f"{path}[]")
    for word in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(word, ()):
            found |= free_form_fields(part, path=path)
    for name, part in schema.get("properties", {}).items():
        found |= free_form_fields(part, path=f"{path}.{name}")
    return found


def test_every_field_has_a_declared_shape_or_a_reason(schema: dict[str, Any]) -> None:
    found = set()
    for name, component in schema["components"]["schemas"].items():
        found |= free_form_fields(component, path=name)
    for name, operation in operations(schema):
        bodies = {"request": operation.get("requestBody", {}), **operation["responses"]}
        for parameter in operation.get("parameters", ()):
            bodies[parameter["name"]] = {"content": {"": parameter}}
        for kind, body in bodies.items():
            for content in body.get("content", {}).values():
                found |= free_form_fields(content["schema"], path=f"{name} {kind}")
    assert found == FREE_FORM.keys(), "declare the shape, or give a reason in FREE_FORM"


def test_a_field_without_a_shape_is_found() -> None:
    """So that the test above can fail."""
    for schema, place in (
        ({"type": "object"}, "A"),
        ({"type": ["object", "null"], "additionalProperties": {}}, "A"),
        ({"type": "object", "properties": {"b": {"description": "anything"}}}, "A.b"),
        ({"type": "object", "additionalProperties": {"type": "object"}}, "A.*"),
        ({"type": "array", "items": {"oneOf": [{"type": "object"}]}}, "A[]"),
        ({"type": "array"}, "A[]"),
    ):
        assert free_form_fields(schema, path="A") == {place}
    assert (
        free_form_fields({"type": "object", "properties": {"b": {"type": "string"}}}, path="A")
        == set()
    )
