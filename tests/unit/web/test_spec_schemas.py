"""The schemas of specs against recorded requests and against the fields of the engines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from controlplane.domain.common.spec_fields import FieldKind, SpecField, check_fields
from controlplane.ports import adapter_registry
from controlplane.ports.engines import EngineTask
from controlplane.web import spec_schemas
from tests.api_document import api_document

UID = "0f4f6b0c7a4e4d5b9d3c1c8f2f6f5a10"
JOBS: Mapping[str, dict[str, Any]] = {
    "finetune": {
        "name": "tickets",
        "model_version": UID,
        "dataset_version": UID,
        "output_name": "tickets",
        "spec": {
            "method": "lora",
            "learning_rate": 0.0002,
            "epochs": 3,
            "lora": {"rank": 16},
            "parallel": {"tensor": 2},
            "max_steps": None,
        },
    },
    "evaluate": {
        "name": "how good?",
        "model_version": UID,
        "dataset_version": UID,
        "spec": {"metrics": ["exact_match", "perplexity"], "limit": None},
    },
    "quantize": {
        "name": "smaller",
        "model_version": UID,
        "dataset_version": UID,
        "output_name": "tickets-w8a8",
        "spec": {"scheme": "w8a8-smoothquant", "tolerance": {"accuracy_drop": None}},
    },
    "script": {
        "name": "count",
        "code": UID,
        "spec": {"argv": ["python", "count.py"], "maximum_run_time_seconds": 600},
    },
}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return api_document()


def errors(document: Mapping[str, Any], component: str, value: object) -> list[str]:
    schema = {**document, "$ref": f"#/components/schemas/{component}"}
    return [error.message for error in Draft202012Validator(schema).iter_errors(value)]


def test_a_recorded_request_of_each_kind_validates_and_its_mistakes_do_not(
    document: dict[str, Any],
) -> None:
    union = document["components"]["schemas"]["JobSubmitRequest"]
    assert union["discriminator"]["propertyName"] == "kind"
    assert set(union["discriminator"]["mapping"]) == set(JOBS)
    for kind, job in JOBS.items():
        right = {"kind": kind, **job}
        assert errors(document, "JobSubmitRequest", right) == [], kind
        field = next(iter(job["spec"]))
        for spec in ({**job["spec"], "no_such_field": 1}, {**job["spec"], field: {"a": 1}}):
            assert errors(document, "JobSubmitRequest", {**right, "spec": spec}), (kind, spec)
    other = {"kind": "evaluate", **JOBS["evaluate"], "spec": {"learning_rate": 0.1}}
    assert errors(document, "JobSubmitRequest", other), "a field of another kind"
    beyond = {"kind": "finetune", **JOBS["finetune"], "spec": {"learning_rate": 4.0}}
    assert errors(document, "JobSubmitRequest", beyond), "a value beyond its limit"


def test_deployments_and_steps_have_the_spec_of_their_task(document: dict[str, Any]) -> None:
    deployment = {"name": "tickets", "model_version": UID, "spec": {"context_length": 4096}}
    assert errors(document, "DeploymentCreateRequest", deployment) == []
    assert errors(document, "DeploymentCreateRequest", {**deployment, "spec": {"epochs": 3}})
    step = {"kind": "deploy", "deployment_name": "tickets", "spec": {"prefix_cache": "on"}}
    assert errors(document, "StepSubmitRequest", step) == []
    assert errors(document, "StepSubmitRequest", {**step, "kind": "finetune"})


def test_every_field_of_every_engine_is_in_the_schema_of_its_task(
    document: dict[str, Any],
) -> None:
    schemas = document["components"]["schemas"]
    for name in adapter_registry.engine_names():
        engine = adapter_registry.engine_by_name(name)
        for task in engine.tasks:
            described = schemas[f"{task.value.title()}SpecRequest"]["properties"]
            for field in engine.fields(task):
                assert described[field.name]["title"] == field.label, (name, task, field.name)
    assert "default" not in schemas["FinetuneSpecRequest"]["properties"]["learning_rate"]
    assert schemas["ServeSpecRequest"]["properties"]["memory_fraction"]["default"] == 0.9


def test_the_schema_admits_a_default_and_refuses_what_the_engine_refuses() -> None:
    """The schema and ``check_fields`` read one table; here they are compared field by field."""
    values: tuple[Any, ...] = (
        None,
        -1,
        0,
        1,
        0.5,
        10**9,
        "",
        "auto",
        [],
        ["perplexity"],
        [1],
        {},
        {"A": "b"},
        True,
    )
    for task in EngineTask:
        fields, _ = spec_schemas.engine_fields(task)
        for field in fields:
            schema = spec_schemas._field_schema(field, strict=True)
            for value in values:
                refused = bool(check_fields([replace(field)], {field.name: value}))
                found = Draft202012Validator(schema).is_valid(value)
                if field.kind is not FieldKind.GROUP:
                    assert found is not refused, (task, field.name, value)
            if "default" in schema:
                assert Draft202012Validator(schema).is_valid(schema["default"]), field.name


def test_an_option_of_a_new_engine_arrives_by_itself() -> None:
    option = SpecField(
        name="speculative_tokens",
        label="Speculative tokens",
        help="Number of tokens that the draft model predicts.",
        kind=FieldKind.INTEGER,
        default=0,
        least=0,
        most=16,
    )

    class NewEngine:
        name = "new"
        tasks = frozenset({EngineTask.SERVE})

        def fields(self, task: EngineTask) -> tuple[SpecField, ...]:
            return (option,)

    known = adapter_registry.engine_by_name
    with (
        patch.object(adapter_registry, "engine_names", lambda: ("new", "vllm")),
        patch.object(
            adapter_registry,
            "engine_by_name",
            lambda name: NewEngine() if name == "new" else known(name),
        ),
    ):
        schemas: dict[str, Any] = {}
        component = spec_schemas._spec_component((EngineTask.SERVE, True), schemas)
    described = schemas[component]["properties"]["speculative_tokens"]
    assert (described["maximum"], described["x-engines"]) == (16, ["new"])


def test_every_example_of_the_document_validates(document: dict[str, Any]) -> None:
    """Requests, responses and problems: a reader copies them."""
    wrong = []
    checked = 0
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
            for media in (each for body in bodies for each in body.get("content", {}).values()):
                for name, example in media.get("examples", {}).items():
                    _, _, shared = example.get("$ref", "").rpartition("/")
                    found = document["components"]["examples"][shared] if shared else example
                    validator = Draft202012Validator({**document, **media["schema"]})
                    checked += 1
                    wrong += [
                        f"{method} {path} {name}: {error.message}"
                        for error in validator.iter_errors(found["value"])
                    ]
    assert wrong == []
    assert checked > 500
