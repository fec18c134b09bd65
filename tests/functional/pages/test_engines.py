"""The pages of engines, and their choice in the form of a deployment."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from django.test import Client

from apps.fleet.models import Card
from apps.models.models import ModelVersion
from apps.serving.models import Deployment, Revision
from apps.serving.selectors.revision_configurations import engine_choices
from controlplane.ports.adapter_registry import all_chips, engine_names
from controlplane.ports.engines import ModelFacts
from tests.cases import for_each_case
from tests.functional.sample_rows import FilledCompany

pytestmark = pytest.mark.django_db


def test_the_list_names_every_installed_engine(browser: Client, filled: FilledCompany) -> None:
    page = browser.get("/engines").content.decode()
    for name in engine_names():
        assert f'href="/engines/{name}"' in page


def test_an_engine_says_how_its_arguments_were_checked_and_from_which_image_it_runs(
    browser: Client, filled: FilledCompany
) -> None:
    page = browser.get("/engines/vllm_ascend").content.decode()
    assert "arguments parsed" in page
    assert "quay.io/ascend/vllm-ascend:v0.23.0-a3" in page
    assert "not run on hardware" in page
    assert "does not support bfloat16" in page
    assert "flags unverified" in browser.get("/engines/mindie").content.decode()


def test_an_engine_says_where_it_does_not_run_and_why(
    browser: Client, filled: FilledCompany
) -> None:
    page = browser.get("/engines/msmodelslim").content.decode()
    assert "no image of msModelSlim is known for" in page
    assert "No supported chips." in page


def test_what_is_no_engine_has_no_page(browser: Client, filled: FilledCompany) -> None:
    assert browser.get("/engines/no-such-engine").status_code == 404


def test_the_interface_tells_profile_images_and_chips(
    browser: Client, filled: FilledCompany
) -> None:
    engines = {each["name"]: each for each in browser.get("/api/v1/engines").json()}
    found = engines["vllm"]
    assert (found["title"], found["flags"]) == ("vLLM", "parsed")
    assert found["versions"] == ">=0.23,<0.34"
    assert found["images"]["nvidia-h800"] == "vllm/vllm-openai:v{version}"
    assert "nvidia-h800" in found["chips"]["serve"]
    assert "cpu" not in found["chips"]["serve"]
    assert found["metrics"]["requests_running"] == "vllm:num_requests_running"
    assert "compressed-tensors" in found["formats"]


def option(page: str, value: str) -> str:
    found = re.search(rf'<option value="{value}"[^>]*>[^<]*', page)
    assert found is not None, page[:3000]
    return found[0]


def drawn(browser: Client, filled: FilledCompany, **chosen: str) -> str:
    form = {"model_version": filled.base.uid, "chip": "cpu", **chosen}
    return browser.post("/deployments/fields", form).content.decode()


def test_engines_that_do_not_serve_on_the_chip_are_greyed_out_with_the_reason(
    browser: Client, filled: FilledCompany
) -> None:
    page = drawn(browser, filled)
    assert "disabled" in option(page, "vllm")
    assert "vLLM requires an accelerator" in option(page, "vllm")
    assert "disabled" not in option(page, "transformers")
    assert "automatic: Transformers" in page


def test_what_the_engine_cannot_do_is_greyed_out_with_the_reason(
    browser: Client, filled: FilledCompany
) -> None:
    page = drawn(browser, filled, chip="ascend-910b3", engine="vllm_ascend")
    assert "disabled" in option(page, "fp8")
    assert "in the precision of the weights" in option(page, "fp8")
    assert re.search(r'<input[^>]*name="queue_size"[^>]*disabled', page)
    page = drawn(browser, filled, engine="transformers")
    assert re.search(r'<input[^>]*name="context_length"[^>]*disabled', page)
    assert "Transformers does not support this field." in page


def asked(filled: FilledCompany, **changes: str) -> dict[str, str]:
    return {
        "team": filled.ready.team.uid,
        "model_version": filled.base.uid,
        "name": "fresh",
        "replicas": "1",
        "cards": "1",
        "chip": "cpu",
        **changes,
    }


def created_revision(name: str = "fresh") -> Revision:
    return Deployment.objects.get(name=name).revisions.get()


def test_the_best_engine_of_the_chip_is_taken_where_nobody_chooses(
    browser: Client, filled: FilledCompany
) -> None:
    browser.post("/deployments/new", asked(filled))
    assert created_revision().engine == "transformers"


def test_a_deployment_may_wait_for_a_chip_that_is_not_here_with_its_engine_and_fields(
    browser: Client, filled: FilledCompany
) -> None:
    form = asked(
        filled,
        chip="nvidia-h800",
        engine="sglang",
        cards="2",
        context_length="256",
        parallel_tensor="1",
        parallel_data="2",
    )
    answer = browser.post("/deployments/new", form)
    assert answer.status_code == 302, answer.content.decode()
    revision = created_revision()
    assert (revision.engine, revision.chips, revision.cards) == ("sglang", ["nvidia-h800"], 2)
    assert revision.spec["context_length"] == 256
    assert revision.spec["parallel"]["data"] == 2


@for_each_case(
    ("changes", "message"),
    [
        (
            {"engine": "vllm"},
            "vllm does not serve on cpu: vLLM requires an accelerator; use transformers",
        ),
        ({"chip": "nvidia-h800", "engine": "mindie"}, "no image of MindIE is known for"),
        (
            {"chip": "nvidia-h800", "engine": "vllm", "cards": "4", "parallel_tensor": "3"},
            "tensor 3 × pipeline 1 × data 1 is 3; it must equal the number of cards of a replica, 4",
        ),
        (
            {"chip": "nvidia-h800", "engine": "vllm", "cards": "12"},
            "must be a multiple of 8, the cards of a node, got 12; valid values: 8, 16",
        ),
        (
            {"chip": "nvidia-h800", "engine": "vllm", "engine_version": "0.1"},
            "must be a version of vLLM",
        ),
    ],
)
def test_what_cannot_be_served_is_refused_with_what_would_be_right(
    browser: Client, filled: FilledCompany, changes: dict[str, str], message: str
) -> None:
    answer = browser.post("/deployments/new", asked(filled, **changes))
    assert answer.status_code == 422
    assert message in answer.content.decode().replace("&gt;", ">")
    assert not Deployment.objects.filter(name="fresh").exists()


def test_an_image_is_not_promised_to_a_cluster_that_starts_no_containers(
    browser: Client, filled: FilledCompany
) -> None:
    Card.objects.update(chip="nvidia-h800")
    page = drawn(browser, filled, chip="nvidia-h800")
    assert "do not run containers" in option(page, "vllm")
    assert "automatic: Transformers" in page


def test_weights_that_an_engine_does_not_load_grey_it_out(
    browser: Client, filled: FilledCompany
) -> None:
    ModelVersion.objects.filter(pk=filled.base.pk).update(scheme="w8a8", format="modelslim")
    page = drawn(browser, filled, chip="ascend-910b3")
    assert "disabled" not in option(page, "vllm_ascend")
    page = drawn(browser, filled, chip="nvidia-h800")
    assert "in the format modelslim, which vLLM does not support" in option(page, "vllm")


@pytest.mark.parametrize(
    ("chip", "order"),
    [
        ("nvidia-h800", ["vllm", "sglang", "xllm", "vllm_omni", "tei", "transformers"]),
        ("ascend-910b3", ["vllm_ascend", "xllm", "sglang", "vllm_omni", "mindie"]),
        ("cpu", ["transformers"]),
    ],
)
def test_what_serves_most_models_of_the_catalog_on_the_chip_goes_first(
    chip: str, order: list[str]
) -> None:
    choices = engine_choices(chip=all_chips()[chip], model=None)
    assert [choice.name for choice in choices if not choice.unavailable_reason] == order


@pytest.mark.parametrize(
    ("chip", "architecture", "files", "best"),
    [
        ("nvidia-h800", "XLMRobertaModel", ("modules.json",), "vllm"),
        ("nvidia-h800", "QwenImagePipeline", ("model_index.json",), "vllm_omni"),
        ("ascend-910b3", "QwenImagePipeline", ("model_index.json",), "vllm_omni"),
        ("nvidia-h800", "WhisperForConditionalGeneration", (), "vllm"),
        ("cpu", "StableDiffusionPipeline", ("model_index.json",), "transformers"),
    ],
)
def test_an_engine_that_does_not_serve_the_kind_of_model_is_not_the_default(
    chip: str, architecture: str, files: tuple[str, ...], best: str
) -> None:
    model = ModelFacts(
        name="any",
        architecture=architecture,
        context_length=0,
        parameters=0,
        files=frozenset(files),
    )
    choices = engine_choices(chip=all_chips()[chip], model=model)
    assert (choices[0].name, choices[0].unavailable_reason) == (best, "")


def test_an_engine_that_supports_the_model_in_the_catalog_goes_before_the_others() -> None:
    model = ModelFacts(
        name="any",
        architecture="DeepseekV2ForCausalLM",
        context_length=0,
        parameters=0,
        format="modelslim",
        scheme="w8a8",
        catalog_key="deepseek-v2-lite-chat",
    )
    chip = all_chips()["ascend-910b3"]
    assert engine_choices(chip=chip, model=model)[0].name == "sglang"
    others = engine_choices(chip=chip, model=replace(model, catalog_key=""))
    assert others[0].name == "vllm_ascend"
