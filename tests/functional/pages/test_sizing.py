"""The calculator says what fits, and when nothing does, why and what would be right."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pytest
from django.test import Client

from tests import factories
from tests.cases import for_each_case
from tests.functional.sample_rows import EmptyCompany

ADDRESS = "/models/sizing"
QWEN = {"model": "catalog:qwen2-7b-instruct", "chip": "nvidia-h800"}


@pytest.fixture(autouse=True)
def catalog(published_catalog: None) -> None:
    """Every test begins with it."""


def answer(client: Client, **asked: str) -> Any:
    response = client.get(ADDRESS, {**QWEN, **asked})
    assert response.status_code == 200
    return response.context["sized"].estimate


def test_without_a_model_there_is_no_estimate_and_no_error(
    browser: Client, empty: EmptyCompany
) -> None:
    text = browser.get(ADDRESS).text
    assert "Select a model to calculate its memory" in text
    assert "Fix the following fields" not in text


def test_a_model_of_the_catalog_is_sized_part_by_part(browser: Client, empty: EmptyCompany) -> None:
    found = answer(browser, context="4096", concurrency="16")
    parts = {part.name: part.bytes for part in found.parts}
    assert parts["weights"] == 2 * 7_620_000_000
    assert parts["cache"] == 16 * 4096 * 57_344
    assert (found.fits, found.plan.cards) == (True, 1)
    text = browser.get(ADDRESS, QWEN).text
    assert "Fits on 1 × NVIDIA H800" in text
    assert 'data-chart="/models/sizing/curve.json?model=catalog%3Aqwen2-7b-instruct"' in text


def test_the_answer_alone_comes_for_htmx(browser: Client, empty: EmptyCompany) -> None:
    text = browser.get(ADDRESS, QWEN, headers={"HX-Request": "true"}).text
    assert "peak per card" in text
    assert "<form" not in text


def test_training_asks_for_more_cards_than_serving(browser: Client, empty: EmptyCompany) -> None:
    serving, training = answer(browser), answer(browser, task="train")
    assert training.plan.cards > serving.plan.cards
    assert training.largest_batch is not None
    assert training.fits


def test_an_estimate_that_does_not_fit_suggests_changes(
    browser: Client, empty: EmptyCompany
) -> None:
    text = browser.get(ADDRESS, {**QWEN, "model": "catalog:deepseek-v3", "cards": "1"}).text
    assert "Does not fit on NVIDIA H800" in text
    assert "the weights alone require" in text
    assert "use more cards, a chip with more memory, or fewer bits per weight" in text


@for_each_case(
    ("asked", "message"),
    [
        ({"tensor": "3", "cards": "8", "task": "train"}, "3 does not divide 8"),
        ({"tensor": "3", "cards": "8", "task": "train"}, "The parallel plan is not valid"),
        ({"tensor": "8"}, "parallel.tensor must divide the 28 heads, got 8"),
        (
            {"chip": "ascend-910a", "cards": "3"},
            "supports requests of 1, 2, 4, 8 cards on a node, got 3",
        ),
        ({"context": "0"}, "context must be ≥ 1, ≤ 10485760, got 0"),
        (
            {"context": "100000"},
            "context must be at most 32768, the maximum context length of the model, got 100000",
        ),
        ({"model": "catalog:nothing"}, "Select a valid choice"),
        ({"model": "catalog:joyai-llm-flash"}, "is not known, so its memory cannot be estimated"),
    ],
)
def test_what_is_wrong_is_named_with_what_would_be_right(
    browser: Client, empty: EmptyCompany, asked: Mapping[str, str], message: str
) -> None:
    text = browser.get(ADDRESS, {**QWEN, **asked}).text.replace("&#x27;", "'")
    assert message in text


def test_a_version_of_ours_is_sized_by_its_own_configuration(
    browser: Client, empty: EmptyCompany
) -> None:
    version = factories.model_version(actor=empty.user, team=empty.team)
    model = f"version:{version.uid}"
    text = browser.get(ADDRESS, {**QWEN, "model": model}).text
    # The tests' model says nothing of its layers.
    assert "num_hidden_layers is missing; it must be a whole number" in text


def test_versions_of_other_teams_are_not_there(browser: Client, empty: EmptyCompany) -> None:
    other = factories.team("search")
    version = factories.model_version(actor=factories.user("sam", team=other), team=other)
    response = browser.get(f"{ADDRESS}/curve.json", {"model": f"version:{version.uid}"})
    assert response.status_code == 422
    assert (
        "model must be catalog:KEY or version:UID of an existing model"
        in response.json()["errors"][0]["message"]
    )


def test_the_chart_grows_with_context_and_requests(browser: Client, empty: EmptyCompany) -> None:
    response = browser.get(f"{ADDRESS}/curve.json", {"model": QWEN["model"]})
    series = response.json()["series"]
    assert [one["name"] for one in series] == [
        "1 concurrent request",
        "4 concurrent requests",
        "16 concurrent requests",
        "64 concurrent requests",
    ]
    assert series[0]["x"] == [1024, 2048, 4096, 8192, 16_384, 32_768]
    for one in series:
        assert one["y"] == sorted(one["y"])
    for fewer, more in itertools.pairwise(series):
        assert all(low < high for low, high in zip(fewer["y"], more["y"], strict=True))


def test_the_chart_refuses_unknown_values(browser: Client, empty: EmptyCompany) -> None:
    response = browser.get(f"{ADDRESS}/curve.json", {"model": QWEN["model"], "scheme": "w3a3"})
    assert response.status_code == 422
    assert "scheme must be one of stored" in response.json()["errors"][0]["message"]
