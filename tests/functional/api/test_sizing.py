"""Sizing by REST: the answer with every part, and refusals that name the field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.cases import for_each_case
from tests.functional.api.callers import wrong_fields
from tests.integration.company import Company, ready_model
from tests.unit.domain.sizing.model_configs import DEEPSEEK_V3, QWEN2_7B

ADDRESS = "/api/v1/sizing"
ASKED: Mapping[str, Any] = {"config": QWEN2_7B, "chip": "nvidia-h800"}


def asked(client: APIClient, **changes: Any) -> Any:
    return client.post(ADDRESS, {**ASKED, **changes}, format="json")


def test_a_raw_configuration_is_sized_part_by_part(engineer: APIClient) -> None:
    answer = asked(engineer, spec={"context": 4096, "concurrency": 2}).json()
    parts = {part["name"]: part["bytes"] for part in answer["parts"]}
    assert answer["cache_bytes_per_token"] == 57_344
    assert parts["cache"] == 2 * 4096 * 57_344
    assert sum(parts.values()) == answer["total"]
    assert (answer["fits"], answer["proposed"], answer["plan"]["cards"]) == (True, True, 1)
    assert answer["spec"]["memory_fraction"] == 0.9
    assert answer["findings"] == []


def test_training_tells_a_plan_that_multiplies_out(engineer: APIClient) -> None:
    spec = {"task": "train", "cards": 16, "context": 2048}
    answer = asked(engineer, spec=spec).json()
    plan = answer["plan"]
    assert plan["tensor"] * plan["pipeline"] * plan["context"] * plan["data"] == 16
    assert answer["fits"]
    parts = sum(part["bytes"] for part in answer["parts"])
    assert answer["total"] == parts - answer["not_at_once"]


def test_an_entry_of_the_catalog_is_sized_in_what_it_is_stored_in(
    published_catalog: None, engineer: APIClient, company: Company
) -> None:
    body = {"catalog": "deepseek-v3", "chip": "nvidia-h200"}
    answer = engineer.post(ADDRESS, body, format="json").json()
    assert answer["attention"] == "mla"
    # Eight bits a weight and their scales, in what 16 cards of two nodes hold together.
    weights = answer["parts"][0]["bytes"] * answer["plan"]["cards"]
    assert weights == pytest.approx(671e9, rel=0.1)
    assert answer["fits"]


def test_what_does_not_fit_is_an_answer_that_says_why(engineer: APIClient) -> None:
    answer = asked(engineer, config=DEEPSEEK_V3, spec={"cards": 1}).json()
    assert not answer["fits"]
    assert "the weights alone require" in answer["findings"][0]["message"]
    assert answer["largest_context"] == 0


@pytest.mark.parametrize("chip", ["nvidia-h800", "cpu"])
def test_a_context_that_the_model_was_not_made_for_is_not_legal(
    engineer: APIClient, chip: str
) -> None:
    answer = asked(engineer, chip=chip, spec={"context": 10_485_760, "concurrency": 1}).json()
    found = next(each for each in answer["findings"] if each["field"] == "context")
    assert "must be at most 32768" in found["message"]
    assert not answer["legal"]
    at_most = asked(engineer, chip=chip, spec={"context": 32_768, "concurrency": 1}).json()
    assert (at_most["legal"], at_most["findings"]) == (True, [])


def test_a_chip_without_memory_of_its_own_has_no_limit(engineer: APIClient) -> None:
    answer = asked(engineer, chip="cpu").json()
    assert (answer["limit"], answer["fits"], answer["largest_context"]) == (None, True, None)


@for_each_case(
    ("changes", "field", "message"),
    [
        ({"chip": "abacus"}, "chip", "unknown chip 'abacus'; known are"),
        ({"engine": "abacus"}, "engine", "unknown engine 'abacus'; known are"),
        ({"spec": {"context": 0}}, "context", "got 0"),
        ({"spec": {"colour": 1}}, "colour", "unknown field colour"),
        ({"spec": {"scheme": "w3a3"}}, "scheme", "scheme must be one of"),
        (
            {"config": {**QWEN2_7B, "num_hidden_layers": 10**9}},
            "num_hidden_layers",
            "from 1 to 1000, got 1000000000",
        ),
        ({"config": {"architectures": ["Foo"]}}, "architectures", "'Foo' is not known"),
    ],
)
def test_what_is_wrong_is_refused_by_field(
    engineer: APIClient, changes: Mapping[str, Any], field: str, message: str
) -> None:
    wrong = wrong_fields(asked(engineer, **changes), status=422, code="sizing-refused")
    assert message in wrong[field]


def test_exactly_one_model_must_be_named(engineer: APIClient) -> None:
    for body in ({"chip": "cpu"}, {**ASKED, "catalog": "qwen2-7b-instruct"}):
        wrong = wrong_fields(engineer.post(ADDRESS, body, format="json"))
        assert "give exactly one of model_version, catalog, config" in wrong["model_version"]


def test_versions_of_other_teams_are_not_there(
    engineer: APIClient, stranger: APIClient, company: Company
) -> None:
    version = ready_model(team=company.team, name="own")
    body = {"model_version": version.uid, "chip": "cpu"}
    assert stranger.post(ADDRESS, body, format="json").status_code == 400
    assert engineer.post(ADDRESS, body, format="json").status_code in (200, 422)
