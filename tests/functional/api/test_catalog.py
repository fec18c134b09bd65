"""The catalog by REST."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from apps.models.models import CatalogModel, ModelVersion
from tests.cases import for_each_case
from tests.functional.api.callers import API
from tests.integration.company import Company


@pytest.fixture(autouse=True)
def loaded(published_catalog: None) -> None:
    """Every test begins with it."""


def test_the_list_has_every_entry_with_its_matrix(engineer: APIClient) -> None:
    answer = engineer.get(f"{API}/catalog").json()
    assert len(answer) == 169
    by_key = {entry["key"]: entry for entry in answer}
    entry = by_key["qwen2-7b-instruct"]
    assert (entry["layers"], entry["kv_heads"], entry["kv_bytes_per_token"]) == (28, 4, 57344)
    cells = {(cell["task"], cell["vendor"], cell["engine"]): cell for cell in entry["cells"]}
    assert cells["serve", "nvidia", "vllm"]["status"] == "supported"
    assert cells["serve", "nvidia", "vllm"]["evidence"] == ["S5"]
    assert cells["quantize", "nvidia", "llm_compressor"]["status"] == "unknown"


def test_the_list_costs_no_more_than_three_queries(engineer: APIClient) -> None:
    engineer.get(f"{API}/catalog")
    with CaptureQueriesContext(connection) as queries:
        engineer.get(f"{API}/catalog")
    assert len(queries) <= 3


def test_the_list_is_narrowed_as_the_page_is(engineer: APIClient) -> None:
    answer = engineer.get(f"{API}/catalog?modality=llm&modality=vlm&size=4b-10b&q=qwen3").json()
    assert {entry["modality"] for entry in answer} == {"llm", "vlm"}
    assert all("qwen3" in entry["key"] for entry in answer)
    assert all(4e9 <= entry["parameters"] < 1e10 for entry in answer)


@for_each_case("query", ["modality=smell", "serve=abacus", "hue=red", "size=big"])
def test_a_value_that_is_none_is_refused(engineer: APIClient, query: str) -> None:
    answer = engineer.get(f"{API}/catalog?{query}")
    assert answer.status_code == 400
    assert query.partition("=")[0] in str(answer.json())


def test_one_model_comes_with_matrix_sources_and_our_versions(
    engineer: APIClient, company: Company
) -> None:
    row = CatalogModel.objects.get(key="qwen3-8b")
    ModelVersion.objects.filter(pk=company.model.pk).update(catalog_model=row)
    answer = engineer.get(f"{API}/catalog/qwen3-8b").json()
    matrix = {vendor["vendor"]: vendor for vendor in answer["matrix"]}
    assert matrix["nvidia"]["kind"] == "gpu"
    assert matrix["ascend"]["kind"] == "npu"
    own = {claim["engine"]: claim for claim in matrix["cpu"]["serve"]}["transformers"]
    assert (own["status"], own["evidence"], own["renderable"]) == ("unknown", [], True)
    serving = {claim["engine"]: claim for claim in matrix["ascend"]["serve"]}
    assert serving["vllm_ascend"]["status"] == "supported"
    assert serving["vllm_ascend"]["renderable"] is False
    assert serving["vllm_ascend"]["refusal"] == "no plug-in for this engine is installed"
    keys = {source["key"] for source in answer["sources"]}
    assert set(answer["evidence"]) <= keys
    assert [version["uid"] for version in answer["versions"]] == [company.model.uid]
    assert answer["withdrawn"] is False


def test_another_teams_versions_are_not_named(stranger: APIClient, company: Company) -> None:
    row = CatalogModel.objects.get(key="qwen3-8b")
    ModelVersion.objects.filter(pk=company.model.pk).update(catalog_model=row)
    assert stranger.get(f"{API}/catalog/qwen3-8b").json()["versions"] == []


def test_an_unknown_model_is_not_found(engineer: APIClient) -> None:
    assert engineer.get(f"{API}/catalog/qwen9-1t").status_code == 404
