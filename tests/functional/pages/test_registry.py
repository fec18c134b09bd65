"""Datasets and models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from apps.models.models import Dataset, DatasetVersion, ModelVersion
from apps.models.selectors import artifact_store
from apps.models.services.model_versions import model_version_fail_import
from apps.serving.models import Deployment
from tests import factories
from tests.functional.sample_rows import EmptyCompany, FilledCompany

HTMX = {"HX-Request": "true"}


def upload(
    empty: EmptyCompany, content: str, name: str = "rows.jsonl", **fields: str
) -> dict[str, object]:
    file = SimpleUploadedFile(name, content.encode())
    return {"team": empty.team.uid, "name": "addresses", "file": file, **fields}


def row(number: int) -> str:
    return json.dumps({"instruction": f"question {number}", "output": f"answer {number}"})


def test_an_upload_leads_to_the_new_version(browser: Client, empty: EmptyCompany) -> None:
    content = "\n".join(row(number) for number in range(20))
    response = browser.post("/datasets/new", upload(empty, content), follow=True)
    version = DatasetVersion.objects.get()
    assert response.redirect_chain == [(f"/datasets/versions/{version.uid}", 302)]
    assert "question 3" in response.text


def test_invalid_rows_are_listed_and_the_input_is_kept(
    browser: Client, empty: EmptyCompany
) -> None:
    lines = [row(number) for number in range(3001)]
    lines[3000] = '{"instruction": "no answer"}'
    form = upload(empty, "\n".join(lines), description="typed by hand")
    response = browser.post("/datasets/new", form)
    assert response.status_code == 422
    assert '<td class="nf-number">3,001</td>' in response.text
    assert 'value="typed by hand"' in response.text
    assert not Dataset.objects.exists()


def test_the_same_rows_again_lead_to_the_version_that_is_there(
    browser: Client, empty: EmptyCompany
) -> None:
    content = "\n".join(row(number) for number in range(20))
    browser.post("/datasets/new", upload(empty, content))
    response = browser.post("/datasets/new", upload(empty, content), follow=True)
    assert "no version was added" in response.text
    assert DatasetVersion.objects.count() == 1


def test_columns_of_other_names_can_be_named(browser: Client, empty: EmptyCompany) -> None:
    content = "frage,antwort\n" + "\n".join(f"q{n},a{n}" for n in range(20))
    form = upload(empty, content, "rows.csv", instruction="frage", output="antwort")
    browser.post("/datasets/new", form)
    assert DatasetVersion.objects.get().row_count == 20


def test_a_viewer_may_not_upload_and_is_told_what_is_missing(
    viewer: Client, empty: EmptyCompany
) -> None:
    response = viewer.post("/datasets/new", upload(empty, row(1)))
    assert response.status_code == 403
    assert "permission to contribute in team maps" in response.text


def test_nothing_can_be_registered_until_roots_are_named(browser: Client) -> None:
    assert "NINEFOLD_MODEL_ROOTS" in browser.get("/models/import").text


@pytest.fixture
def model_root(tmp_path: Path, settings: Settings) -> Path:
    folder = tmp_path / "tiny-llama"
    folder.mkdir()
    for name, digest, _size in factories.model_files():
        artifact_store().materialise(digest, folder / name)
    settings.NINEFOLD_MODEL_ROOTS = [str(tmp_path)]
    return folder


def test_a_folder_is_registered_under_its_own_name(
    browser: Client, empty: EmptyCompany, model_root: Path
) -> None:
    form = {"team": empty.team.uid, "path": str(model_root), "name": ""}
    response = browser.post("/models/import", form, follow=True)
    version = ModelVersion.objects.get()
    assert version.line.name == "tiny-llama"
    assert 'data-state="importing"' in response.text


def test_a_folder_that_is_not_offered_is_refused(
    browser: Client, empty: EmptyCompany, model_root: Path
) -> None:
    form = {"team": empty.team.uid, "path": "/etc", "name": "x"}
    assert browser.post("/models/import", form).status_code == 422
    assert not ModelVersion.objects.exists()


def test_an_import_is_polled_until_it_ends(
    browser: Client, empty: EmptyCompany, model_root: Path
) -> None:
    browser.post("/models/import", {"team": empty.team.uid, "path": str(model_root)})
    version = ModelVersion.objects.get()
    address = f"/models/versions/{version.uid}"
    fragment = browser.get(address, headers=HTMX)
    assert fragment.status_code == 200
    assert 'hx-trigger="every' in fragment.text
    model_version_fail_import(version=version, reason="weights are cut off", at=timezone.now())
    ended = browser.get(address, headers=HTMX)
    assert ended.status_code == 286
    assert "weights are cut off" in ended.text
    assert "hx-trigger" not in ended.text
    assert "<html" not in ended.text


def test_a_failed_import_is_tried_again_once(
    browser: Client, empty: EmptyCompany, model_root: Path
) -> None:
    browser.post("/models/import", {"team": empty.team.uid, "path": str(model_root)})
    version = ModelVersion.objects.get()
    model_version_fail_import(version=version, reason="gone", at=timezone.now())
    address = f"/models/versions/{version.uid}/retry"
    assert "was restarted" in browser.post(address, follow=True).text
    assert "cannot retry" in browser.post(address, follow=True).text


def test_a_version_shows_its_lineage_and_its_base_beside_it(
    browser: Client, filled: FilledCompany
) -> None:
    text = browser.get(f"/models/versions/{filled.tuned.uid}").text
    assert f"/models/versions/{filled.base.uid}" in text
    assert f"/jobs/{filled.succeeded.uid}" in text
    for value in ("0.75", "0.01", "+0.74"):
        assert f">{value}<" in text


def test_one_click_deploys_under_a_free_name(browser: Client, filled: FilledCompany) -> None:
    address = f"/deployments/of/{filled.tuned.uid}"
    first = browser.post(address)
    second = browser.post(address)
    names = [Deployment.objects.get(uid=r["Location"].split("/")[-1]).name for r in (first, second)]
    assert names == ["addresses", "addresses-2"]


def test_home_shows_the_first_steps_until_a_tuned_model_is_deployed(
    browser: Client, empty: EmptyCompany
) -> None:
    assert "Get started" in browser.get("/").text
    own: dict[str, Any] = {"actor": empty.user, "team": empty.team}
    job = factories.job(
        **own,
        queue=empty.queue,
        model=factories.model_version(**own),
        dataset=factories.dataset_version(**own),
    )
    tuned = factories.succeeded(job, cluster=factories.cluster(cards=2))
    assert tuned is not None
    assert f'href="/models/versions/{tuned.uid}"' in browser.get("/").text
    factories.deployment(**own, queue=empty.queue, model=tuned)
    page = browser.get("/").text
    assert "Get started" not in page
    assert "No running jobs." in page
