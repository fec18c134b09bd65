"""The catalog: the list of models, a line with its versions, one version."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.models.models import ArtifactKind, ModelLine, ModelVersion
from apps.models.services import job_outputs
from apps.models.services.artifact_storage import artifact_create
from apps.models.services.model_versions import model_version_fail_import
from tests import factories
from tests.functional.sample_rows import EmptyCompany, FilledCompany

CONFIG = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "max_position_embeddings": 512,
    "num_hidden_layers": 24,
    "hidden_size": 896,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "vocab_size": 151936,
    "torch_dtype": "bfloat16",
}
CARD = "---\nlicense: apache-2.0\ntags:\n- small\n---\n# A model\n"


def described(empty: EmptyCompany, *, config: object = CONFIG, card: str = CARD) -> ModelVersion:
    """A version whose files say more than a test's usually do."""
    version = factories.model_version(actor=empty.user, team=empty.team, name="told")
    files = [
        factories.stored("config.json", json.dumps(config).encode()),
        factories.stored("README.md", card.encode()),
        *(file for file in factories.model_files() if file[0] != "config.json"),
    ]
    artifact = artifact_create(team=empty.team, kind=ArtifactKind.MODEL, files=files)
    ModelVersion.objects.filter(pk=version.pk).update(artifact=artifact)
    return version


def names_in(response: Any) -> set[str]:
    return {line.name for line in response.context["table"].rows}


def test_the_list_tells_what_a_line_is_and_whether_it_serves(
    browser: Client, filled: FilledCompany
) -> None:
    response = browser.get("/models")
    by_name = {line.name: line for line in response.context["table"].rows}
    assert by_name["addresses"].serving == 1
    assert by_name["addresses"].newest_uid == filled.tuned.uid
    assert by_name["addresses"].parameters == 32


def test_the_list_is_narrowed_by_name_architecture_and_what_serves(
    browser: Client, filled: FilledCompany
) -> None:
    factories.model_version(actor=filled.user, team=filled.team, name="idle")
    assert names_in(browser.get("/models?text=idl")) == {"idle"}
    assert names_in(browser.get("/models?serving=on")) == {"addresses", "tiny-qwen2"}
    assert "idle" in names_in(browser.get("/models?architecture=Qwen2ForCausalLM"))
    assert "No matching models" in browser.get("/models?text=nothing-is-called-so").text


def test_the_list_comes_as_a_spreadsheet(browser: Client, filled: FilledCompany) -> None:
    body = b"".join(browser.get("/models?format=csv")).decode()
    assert "addresses,1,ready,Qwen2ForCausalLM,32," in body


def test_a_deployment_of_another_team_is_not_counted(
    browser: Client, filled: FilledCompany, empty: EmptyCompany
) -> None:
    ModelLine.objects.filter(pk=filled.base.line_id).update(team=None)
    search = factories.team("search")
    noor = factories.user("noor", team=search)
    factories.deployment(
        actor=noor, team=search, queue=empty.queue, model=filled.base, name="theirs"
    )
    line = next(
        line
        for line in browser.get("/models").context["table"].rows
        if line.pk == filled.base.line_id
    )
    assert line.serving == 1
    assert "theirs" not in browser.get(f"/models/versions/{filled.base.uid}").text


def test_a_line_shows_how_its_versions_were_measured_and_where_they_serve(
    browser: Client, filled: FilledCompany
) -> None:
    text = browser.get(f"/models/{filled.tuned.line.uid}").text
    assert "0.75" in text
    assert f"/deployments/{filled.ready.uid}" in text


def test_versions_are_compared_on_the_same_rows(browser: Client, filled: FilledCompany) -> None:
    second = _second_version(filled)
    factories.evaluation(model=second, dataset=filled.dataset, exact_match=0.875, actor=filled.user)
    response = browser.get(f"/models/{filled.tuned.line.uid}?tab=compare")
    rows = {row.metric: row.values for row in response.context["measured"]}
    assert rows["exact_match"] == (0.75, 0.875)
    assert {row.metric: row.best for row in response.context["measured"]} == {
        "exact_match": {1},
        "perplexity": frozenset(),
    }
    one = browser.get(f"/models/{filled.tuned.line.uid}?tab=compare&version={second.uid}")
    assert [version.uid for version in one.context["chosen"]] == [second.uid]


def _second_version(filled: FilledCompany) -> ModelVersion:
    origin = job_outputs.OutputOrigin(
        team=filled.team, actor=filled.user, job_uid="", attempt_uid="another-attempt"
    )
    return job_outputs.model_version_register(
        origin=origin,
        name=filled.tuned.line.name,
        files=factories.model_files(),
        base=filled.base,
        dataset_version=filled.dataset,
        metrics={},
    )


def test_a_version_tells_what_its_configuration_and_its_card_say(
    browser: Client, empty: EmptyCompany
) -> None:
    text = browser.get(f"/models/versions/{described(empty).uid}").text
    for fact in (
        "24",
        "hidden size 896",
        "2 key-value heads",
        "151,936",
        "bfloat16",
        "apache-2.0",
    ):
        assert fact in text


@pytest.mark.parametrize("config", [[], {"num_hidden_layers": "many", "torch_dtype": 7}, "x"])
def test_a_strange_configuration_only_tells_less(
    browser: Client, empty: EmptyCompany, config: object
) -> None:
    response = browser.get(f"/models/versions/{described(empty, config=config).uid}")
    assert response.status_code == 200
    assert "Attention heads" not in response.text


def test_files_are_listed_with_their_digests_and_can_be_saved(
    browser: Client, outsider: Client, filled: FilledCompany
) -> None:
    page = browser.get(f"/models/versions/{filled.tuned.uid}?tab=files").text
    assert filled.tuned.artifact is not None
    for file in filled.tuned.artifact.files:
        assert file["digest"].removeprefix("sha256:") in page
    address = f"/models/versions/{filled.tuned.uid}/files/config.json"
    saved = browser.get(address)
    assert json.loads(b"".join(saved))["max_position_embeddings"] == 512
    assert "attachment" in saved["Content-Disposition"]
    assert outsider.get(address).status_code == 404
    assert browser.get(address.replace("config", "secrets")).status_code == 404


def test_unavailable_actions_are_disabled_with_the_reason(
    browser: Client, viewer: Client, filled: FilledCompany
) -> None:
    ready = browser.get(f"/models/versions/{filled.tuned.uid}")
    assert ready.context["steps"].reasons == []
    looking = viewer.get(f"/models/versions/{filled.tuned.uid}")
    assert "do not allow running jobs" in looking.text
    assert "/deployments/of/" not in looking.text


def test_a_failed_import_can_only_be_retried(browser: Client, empty: EmptyCompany) -> None:
    version = factories.model_version(actor=empty.user, team=empty.team, name="cut")
    ModelVersion.objects.filter(pk=version.pk).update(state="importing", artifact=None)
    version.refresh_from_db()
    waiting = browser.get(f"/models/versions/{version.uid}").text
    assert "The files of this version are being imported" in waiting
    model_version_fail_import(version=version, reason="weights are cut off", at=timezone.now())
    text = browser.get(f"/models/versions/{version.uid}").text
    assert "weights are cut off" in text
    assert f"/models/versions/{version.uid}/retry" in text
    assert "/deployments/of/" not in text


def test_what_a_shared_version_was_made_from_stays_with_its_team(
    outsider: Client, filled: FilledCompany
) -> None:
    ModelLine.objects.filter(pk=filled.tuned.line_id).update(team=None)
    version = outsider.get(f"/models/versions/{filled.tuned.uid}")
    line = outsider.get(f"/models/{filled.tuned.line.uid}")
    csv = b"".join(outsider.get(f"/models/{filled.tuned.line.uid}?format=csv")).decode()
    for text in (version.text, line.text, csv):
        for hidden in (filled.base.uid, "tiny-qwen2", filled.dataset.uid, filled.succeeded.uid):
            assert hidden not in text


def test_figures_are_named_in_the_readers_language(browser: Client, filled: FilledCompany) -> None:
    text = browser.get(
        f"/models/versions/{filled.tuned.uid}", headers={"Accept-Language": "zh-hans"}
    ).text
    assert "完全匹配" in text
    assert "困惑度" in text
    assert "exact match" not in text
