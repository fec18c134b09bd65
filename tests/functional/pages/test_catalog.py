"""The catalog's pages: facets with true counts, one model with its matrix, models side by side."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.models.models import CatalogModel, ModelVersion
from apps.models.selectors import catalog as selectors
from apps.models.selectors.catalog import (
    TASKS,
    CatalogSupportClaim,
    catalog_model_facts,
    installed_engines,
)
from controlplane.domain.catalog import CatalogTask, Modality, SupportLevel
from controlplane.domain.common.permissions import TeamRole
from controlplane.ports import adapter_registry
from tests import factories
from tests.functional.sample_rows import EmptyCompany, FilledCompany

ROOT = Path(__file__).resolve().parents[3]


def text_of(response: Any) -> str:
    """What the page says, without its markup."""
    return " ".join(re.sub(r"<[^>]*>", " ", response.content.decode()).split())


@contextmanager
def no_more_queries_than(most: int) -> Iterator[None]:
    with CaptureQueriesContext(connection) as queries:
        yield
    assert len(queries) <= most, [query["sql"][:80] for query in queries]


def links(response: Any) -> list[str]:
    """Keys of the models that a list shows."""
    return re.findall(r'href="/models/catalog/([^"?/]+)"', response.content.decode())


def counts(response: Any, facet: str) -> dict[str, int]:
    (view,) = [one for one in response.context["listing"].facets if one.name == facet]
    return {option.value: option.count for option in view.options}


def test_the_list_costs_one_query_beside_session_and_person(
    browser: Client, empty: EmptyCompany, published_catalog: None
) -> None:
    browser.get("/models/catalog")
    with no_more_queries_than(3):
        response = browser.get("/models/catalog?modality=llm&q=qwen")
    assert response.status_code == 200
    assert Session.objects.exists()


def test_selected_facets_filter_and_stay_in_the_url(
    browser: Client, empty: EmptyCompany, published_catalog: None
) -> None:
    response = browser.get(
        "/models/catalog?family=qwen3&family=qwen2&train=ascend&sort=-parameters"
    )
    entries = selectors.published_catalog().entries
    shown = links(response)
    assert shown
    assert {entries[key].family for key in shown} == {"qwen2", "qwen3"}
    sizes = [entries[key].parameters or 0 for key in shown]
    assert sizes == sorted(sizes, reverse=True)
    for key in shown:
        assert any(
            claim.status is SupportLevel.SUPPORTED
            for claim in entries[key].claims(CatalogTask.TRAIN, vendor="ascend")
        )


def test_facet_counts_equal_the_results_of_a_click(
    browser: Client, empty: EmptyCompany, published_catalog: None
) -> None:
    counted = counts(browser.get("/models/catalog?modality=vlm"), "serve")
    assert counted["ascend"] > 0
    narrowed = browser.get("/models/catalog?modality=vlm&serve=ascend")
    assert narrowed.context["listing"].count == counted["ascend"]


def test_the_counts_of_both_kinds_of_chips_are_what_the_plug_ins_accept(
    browser: Client, empty: EmptyCompany, published_catalog: None
) -> None:
    """Sources name 45 models as trainable on both; the plug-ins accept fewer."""
    pages = {
        task: browser.get(f"/models/catalog?{task}=nvidia&{task}=ascend")
        for task in ("train", "serve", "quantize")
    }
    found = {task: page.context["listing"].count for task, page in pages.items()}
    accepted = {task: accepted_on_both(task) for task in CatalogTask}
    assert found == {task.value: len(keys) for task, keys in accepted.items()}
    assert (found["train"], found["serve"], found["quantize"]) == (29, 78, 0)
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"accept {found['train']} and {found['serve']} of them, and quantize none" in readme
    assert f"{found['train']} of 169 models" in text_of(pages["train"])


def test_what_the_tables_of_engines_name_is_rendered_by_their_plug_ins() -> None:
    """Claims of vLLM-Omni's and Text Embeddings Inference's tables, and of the own server's tests."""
    seen, refused = Counter[str](), {}
    for key, entry in selectors.published_catalog().entries.items():
        for cell in entry.cells:
            if {"S13", "S14", "S15"}.isdisjoint(cell.evidence):
                continue
            seen[cell.engine] += 1
            refusal = selectors.task_rendering_refusal(
                entry, task=cell.task, vendor=cell.vendor, engine=cell.engine
            )
            if refusal:
                refused[f"{key}/{cell.vendor}/{cell.engine}"] = refusal
    assert refused == {}
    assert seen == {"vllm_omni": 15, "tei": 5, "transformers": 28}


def accepted_on_both(task: CatalogTask) -> list[str]:
    """Keys of the models for which a supported claim's plug-in finds nothing wrong, on a GPU and on an NPU."""
    asked = TASKS[task]
    way = {"train": "method", "quantize": "scheme"}.get(task.value, "")
    found = []
    for key, entry in selectors.published_catalog().entries.items():
        generates_text = entry.modality in (Modality.LLM, Modality.VLM)
        # Rerankers written as causal language models are converted by no plug-in.
        served = entry.modality is not Modality.RERANK or "ForCausalLM" not in entry.architecture
        if not (served if task is CatalogTask.SERVE else generates_text):
            continue
        vendors = set()
        for claim in entry.claims(task):
            if (
                claim.status is not SupportLevel.SUPPORTED
                or claim.engine not in installed_engines()
            ):
                continue
            engine = adapter_registry.engine_by_name(claim.engine)
            choices = next((each.choices for each in engine.fields(asked) if each.name == way), ())
            given: dict[str, Any] = {"max_steps": 1} if task is CatalogTask.TRAIN else {}
            specs: list[dict[str, Any]] = [given, *({**given, way: choice} for choice in choices)]
            chips = [
                chip
                for chip in adapter_registry.chip_plugins()[claim.vendor].chips()
                if not engine.unsupported_reason(asked, chip)
            ]
            checks = (
                engine.check(asked, spec, chip=chip, model=catalog_model_facts(entry))
                for chip in chips
                for spec in specs
            )
            if any(not one for one in checks):
                vendors.add(claim.vendor)
        if {"nvidia", "ascend"} <= vendors:
            found.append(key)
    return found


def test_a_search_returns_the_list_fragment(
    browser: Client, empty: EmptyCompany, published_catalog: None
) -> None:
    response = browser.get("/models/catalog?q=deepseek+distill", headers={"HX-Request": "true"})
    body = response.content.decode()
    assert "<html" not in body
    assert len(links(response)) == 6


def test_an_unknown_value_is_ignored_with_a_hint(
    browser: Client, empty: EmptyCompany, published_catalog: None
) -> None:
    response = browser.get("/models/catalog?modality=smell&train=abacus&page=99&sort=hue")
    assert response.context["listing"].count == 169
    assert "Filter ignored: “smell”" in text_of(response)
    assert "Filter ignored: “abacus”" in text_of(response)


def test_pages_follow_each_other_and_keep_the_filters(
    browser: Client, empty: EmptyCompany, published_catalog: None
) -> None:
    seen: list[str] = []
    href = "/models/catalog?modality=llm"
    while href:
        response = browser.get(href)
        seen += links(response)
        href = response.context["listing"].next_href
    assert len(seen) == len(set(seen)) == 94


def test_an_empty_catalog_explains_how_to_load_it(browser: Client, empty: EmptyCompany) -> None:
    assert "catalog_load" in text_of(browser.get("/models/catalog"))


def test_ours_is_a_tab_beside_the_catalog(
    browser: Client, empty: EmptyCompany, published_catalog: None
) -> None:
    for address in ("/models", "/models/catalog"):
        tabs = re.findall(r'<a href="(/models[a-z/]*)"', browser.get(address).content.decode())
        assert {"/models", "/models/catalog"} <= set(tabs)


def test_the_matrix_says_what_each_source_says_and_no_more(
    browser: Client, empty: EmptyCompany, published_catalog: None
) -> None:
    page = browser.get("/models/catalog/chatglm3-6b")
    text = text_of(page)
    assert "vLLM Ascend unsupported" in text
    assert "MindSpeed-LLM supported by an older release only" in text
    assert "stated for engine versions ==2.3.0" in text
    assert "LLM Compressor unknown" in text
    assert "Ascend/MindSpeed-LLM tags v2.0.0..v26.1.0" in text
    rows = {drawn["row"].vendor.name for drawn in page.context["rows"]}
    assert rows == {"nvidia", "ascend"}


def test_a_vendor_without_evidence_is_unknown(
    browser: Client, empty: EmptyCompany, published_catalog: None
) -> None:
    page = browser.get("/models/catalog/qwen3-8b")
    without_evidence = {vendor.name for vendor in page.context["unattested"]}
    assert "cpu" in without_evidence
    assert without_evidence.isdisjoint({"nvidia", "ascend"})


def claims(page: Any, vendor: str, task: CatalogTask) -> dict[str, CatalogSupportClaim]:
    """One cell of the matrix, by engine."""
    (view,) = [view for view in page.context["rows"] if view["row"].vendor.name == vendor]
    return {claim.engine: claim for claim in view["row"].cells[task]}


def test_an_engine_here_that_runs_on_the_chips_is_unknown_until_a_source_speaks_of_it(
    browser: Client, empty: EmptyCompany, published_catalog: None
) -> None:
    page = browser.get("/models/catalog/qwen3-8b")
    own = claims(page, "nvidia", CatalogTask.SERVE)["transformers"]
    assert (own.status, own.installed, own.renderable) == (SupportLevel.UNKNOWN, True, True)
    assert 'href="/engines/transformers"' in page.content.decode()


def test_a_model_that_the_plug_in_refuses_says_so_beside_what_sources_say(
    browser: Client, empty: EmptyCompany, published_catalog: None
) -> None:
    page = browser.get("/models/catalog/internvl3-8b")
    serving = claims(page, "nvidia", CatalogTask.SERVE)
    assert (serving["vllm"].status, serving["vllm"].renderable) == (SupportLevel.SUPPORTED, True)
    assert not serving["transformers"].renderable
    assert "is a InternVLChatModel" in serving["transformers"].refusal
    assert "Not supported by any engine plug-in" in text_of(page)


def test_what_a_source_names_as_not_supported_is_not_rendered(
    browser: Client, empty: EmptyCompany, published_catalog: None
) -> None:
    page = browser.get("/models/catalog/whisper-large-v3")
    ascend = claims(page, "ascend", CatalogTask.SERVE)["vllm_ascend"]
    assert (ascend.status, ascend.renderable) == (SupportLevel.UNSUPPORTED, False)
    assert ascend.evidence == ("S5b",)
    assert "names this model as not supported" in ascend.refusal
    assert claims(page, "nvidia", CatalogTask.SERVE)["vllm"].renderable


def test_an_engine_here_that_does_not_run_on_the_chips_says_so_beside_what_sources_say(
    browser: Client, empty: EmptyCompany, published_catalog: None
) -> None:
    """Nobody publishes an image of msModelSlim, so that its plug-in runs it nowhere."""
    page = browser.get("/models/catalog/qwen3-8b")
    slim = claims(page, "ascend", CatalogTask.QUANTIZE)["msmodelslim"]
    assert (slim.status, slim.installed, slim.renderable) == (SupportLevel.SUPPORTED, True, False)
    assert "not supported by Ninefold: no image of msModelSlim is known" in text_of(page)


@pytest.mark.parametrize("address", ["/models", "/models/catalog"])
def test_the_pages_of_models_lead_to_the_engines(
    browser: Client, empty: EmptyCompany, published_catalog: None, address: str
) -> None:
    assert 'href="/engines"' in browser.get(address).content.decode()


def test_what_has_no_source_is_unknown_whatever_people_say(
    browser: Client, empty: EmptyCompany, published_catalog: None
) -> None:
    text = text_of(browser.get("/models/catalog/deepfm"))
    assert "TensorFlow Serving unknown" in text
    assert "No published source." in text
    assert "Not supported by any engine plug-in" in text


def reasons(page: Any) -> dict[str, str]:
    return {str(step.label): step.reason for step in page.context["catalog_actions"]}


def test_without_weights_the_steps_say_so_and_lead_to_the_import(
    browser: Client, empty: EmptyCompany, published_catalog: None
) -> None:
    page = browser.get("/models/catalog/qwen3-8b")
    assert set(reasons(page).values()) == {"Import the weights first."}
    assert "/models/fetch?hub=huggingface&amp;repository=Qwen%2FQwen3-8B" in page.content.decode()


def linked(filled: FilledCompany, key: str) -> ModelVersion:
    row = CatalogModel.objects.get(key=key)
    ModelVersion.objects.filter(pk=filled.base.pk).update(catalog_model=row)
    return filled.base


def test_with_a_version_of_ours_the_steps_lead_to_their_forms(
    browser: Client, filled: FilledCompany, published_catalog: None
) -> None:
    version = linked(filled, "qwen3-8b")
    page = browser.get("/models/catalog/qwen3-8b")
    assert set(reasons(page).values()) == {""}
    hrefs = [step.href for step in page.context["catalog_actions"]]
    assert all(href.endswith(f"?model={version.uid}") for href in hrefs)
    assert all(browser.get(href).status_code == 200 for href in hrefs)
    assert f"/models/versions/{version.uid}?tab=lineage" in page.content.decode()


def test_a_viewer_gets_the_reason_for_disabled_actions(
    client: Client, filled: FilledCompany, published_catalog: None
) -> None:
    linked(filled, "qwen3-8b")
    client.force_login(factories.user("vera", team=filled.team, role=TeamRole.VIEWER))
    reasons_shown = reasons(client.get("/models/catalog/qwen3-8b"))
    assert set(reasons_shown.values()) == {
        "Your roles are read-only. A team administrator can change them."
    }


def test_another_teams_version_is_not_shown(
    client: Client, filled: FilledCompany, published_catalog: None
) -> None:
    version = linked(filled, "qwen3-8b")
    client.force_login(factories.user("otto", team=factories.team("routing")))
    page = client.get("/models/catalog/qwen3-8b")
    assert version.uid not in page.content.decode()
    assert set(reasons(page).values()) == {"Import the weights first."}


def test_a_field_that_contradicts_the_catalog_is_shown_on_both_pages(
    browser: Client, filled: FilledCompany, published_catalog: None
) -> None:
    version = linked(filled, "qwen2-7b-instruct")
    config = {
        "architectures": ["Qwen2ForCausalLM"],
        "num_hidden_layers": 28,
        "hidden_size": 3584,
        "num_attention_heads": 28,
        "num_key_value_heads": 28,
        "intermediate_size": 18944,
        "vocab_size": 152064,
        "max_position_embeddings": 32768,
    }
    ModelVersion.objects.filter(pk=version.pk).update(config=config, parameters=7_620_000_000)
    for address in ("/models/catalog/qwen2-7b-instruct", f"/models/versions/{version.uid}"):
        text = text_of(browser.get(address))
        assert "1 field of config.json differs from the catalog" in text
        assert "KV heads 28 4" in text


def test_a_configuration_that_cannot_be_read_is_told_with_its_field(
    browser: Client, filled: FilledCompany, published_catalog: None
) -> None:
    version = linked(filled, "qwen2-7b-instruct")
    ModelVersion.objects.filter(pk=version.pk).update(
        config={"architectures": ["Qwen2ForCausalLM"], "num_hidden_layers": "many"}
    )
    text = text_of(browser.get("/models/catalog/qwen2-7b-instruct"))
    assert "num_hidden_layers" in text
    assert "many" in text


def test_a_withdrawn_entry_is_still_shown(
    browser: Client, empty: EmptyCompany, published_catalog: None
) -> None:
    CatalogModel.objects.filter(key="qwen3-8b").update(withdrawn_at=timezone.now())
    assert "The catalog no longer lists this model" in text_of(
        browser.get("/models/catalog/qwen3-8b")
    )
    assert "qwen3-8b" not in links(browser.get("/models/catalog?q=qwen3-8b"))


def test_an_unknown_model_is_not_found(
    browser: Client, empty: EmptyCompany, published_catalog: None
) -> None:
    assert browser.get("/models/catalog/qwen9-1t").status_code == 404


def test_up_to_four_models_stand_side_by_side(
    browser: Client, empty: EmptyCompany, published_catalog: None
) -> None:
    page = browser.get(
        "/models/catalog/compare?ids=qwen2-7b-instruct,qwen3-8b,deepseek-v3,gpt-oss-20b,gpt-oss-120b,nothing"
    )
    assert [entry.key for entry in page.context["entries"]] == [
        "qwen2-7b-instruct",
        "qwen3-8b",
        "deepseek-v3",
        "gpt-oss-20b",
    ]
    text = text_of(page)
    assert "Not shown: gpt-oss-120b" in text
    assert "The catalog has no model “nothing”" in text
    assert "Layers 28 36 61 24" in text


def test_a_model_can_be_removed_from_the_comparison(
    browser: Client, empty: EmptyCompany, published_catalog: None
) -> None:
    page = browser.get("/models/catalog?q=qwen3&ids=qwen3-8b&ids=deepseek-v3")
    listing = page.context["listing"]
    assert listing.compare_href == "/models/catalog/compare?ids=qwen3-8b,deepseek-v3"
    assert [title for title, _ in listing.compared] == ["Qwen3-8B", "DeepSeek-V3"]
    assert listing.compared[0][1] == "/models/catalog?q=qwen3&ids=deepseek-v3"
    assert re.search(r'value="qwen3-8b" checked', page.content.decode())
