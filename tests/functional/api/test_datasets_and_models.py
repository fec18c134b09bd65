from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone
from pytest_django import Settings
from rest_framework.test import APIClient

from apps.models.models import Dataset, DatasetVersion, ModelVersion
from apps.models.reconcilers import folder_imports_reconcile
from apps.models.services import job_outputs
from controlplane.ports.artifacts import StorageFull
from tests.cases import for_each_case
from tests.functional.api.callers import API, body_of, problem, wrong_fields
from tests.integration.company import Company, ready_model, rows, stored, write_model


def upload(client: APIClient, content: bytes, name: str = "rows.jsonl", **fields: Any) -> Any:
    form = {"name": "orders", **fields, "file": SimpleUploadedFile(name, content)}
    return client.post(f"{API}/datasets", form, format="multipart")


def test_an_upload_becomes_a_dataset_with_statistics_and_a_preview(engineer: APIClient) -> None:
    created = upload(engineer, rows(50).getvalue(), description="from the shop")
    assert created.status_code == 201, created.content
    body = created.json()
    assert (body["name"], body["row_count"], body["statistics"]["format"]) == (
        "orders v1",
        50,
        "jsonl",
    )
    assert sum(body["statistics"]["rows_by_split"].values()) == 50
    assert body["preview"][0]["messages"][0] == {"role": "user", "content": "where is 0?"}
    listed = engineer.get(f"{API}/datasets?name=orders").json()["results"]
    assert [version["uid"] for version in listed[0]["versions"]] == [body["uid"]]


def test_a_very_long_file_name_is_kept_by_its_end(engineer: APIClient) -> None:
    created = upload(engineer, rows(3).getvalue(), name="路" * 240 + ".jsonl")
    assert created.status_code == 201, created.content
    assert (
        DatasetVersion.objects.get(uid=created.json()["uid"]).source_name == "路" * 194 + ".jsonl"
    )


def test_the_same_name_adds_a_version(engineer: APIClient) -> None:
    upload(engineer, rows(50).getvalue())
    assert upload(engineer, rows(60).getvalue()).json()["name"] == "orders v2"


def test_the_same_rows_again_are_refused_with_the_version_that_has_them(
    engineer: APIClient,
) -> None:
    first = upload(engineer, rows(50).getvalue()).json()
    again = problem(upload(engineer, rows(50).getvalue()), 409, "duplicate-upload")
    assert again["existing"] == {"uid": first["uid"], "name": "orders v1"}


def test_a_broken_row_is_named_by_its_number(engineer: APIClient) -> None:
    lines = rows(4000).getvalue().split(b"\n")
    lines[3000] = b'{"prompt": "cut off'
    refused = problem(upload(engineer, b"\n".join(lines)), 422, "dataset-refused")
    assert [error["row"] for error in refused["errors"]] == [3001]
    assert refused["total"] == 1
    assert not Dataset.objects.filter(name="orders").exists()


def test_a_missing_column_is_said_with_what_is_expected(engineer: APIClient) -> None:
    refused = problem(
        upload(engineer, b"question,reply\na,b\n", "rows.csv"), 422, "dataset-refused"
    )
    assert "question and answer" in refused["detail"]


def test_columns_can_be_mapped(engineer: APIClient) -> None:
    columns = json.dumps({"instruction": "question", "output": "reply"})
    created = upload(engineer, b"question,reply\na,b\nc,d\n", "rows.csv", columns=columns)
    assert created.status_code == 201, created.content
    wrong = upload(engineer, b"a,b\n", "rows.csv", columns='{"instruktion": "a"}')
    assert "instruktion" in str(wrong_fields(wrong))


@for_each_case("content", [b"", b"\x89PNG\r\n", b"\xff\xfe\x00"])
def test_what_is_no_dataset_is_refused(engineer: APIClient, content: bytes) -> None:
    problem(upload(engineer, content), 422, "dataset-refused")


def test_a_file_beyond_the_limit_is_refused_before_it_is_kept(
    engineer: APIClient, settings: Settings
) -> None:
    settings.NINEFOLD_UPLOAD_LIMIT = 1000
    problem(upload(engineer, b"x" * (2 * 1024 * 1024)), 413, "too-large")
    problem(upload(engineer, rows(500).getvalue()), 422, "dataset-refused")


def test_a_full_store_is_said_and_nothing_is_kept(
    engineer: APIClient, company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise StorageFull("no space left for artifacts in the store")

    store = "controlplane.adapters.artifacts.filesystem.FilesystemArtifacts.put"
    monkeypatch.setattr(store, full)
    problem(upload(engineer, rows(50).getvalue()), 507, "storage-full")
    assert not Dataset.objects.filter(name="orders").exists()


def test_inspecting_shows_the_same_and_keeps_nothing(engineer: APIClient) -> None:
    form = {"file": SimpleUploadedFile("rows.jsonl", rows(50).getvalue())}
    seen = engineer.post(f"{API}/datasets/inspect", form, format="multipart").json()
    created = upload(engineer, rows(50).getvalue()).json()
    assert seen["content_hash"] == created["content_hash"]
    assert seen["statistics"] == created["statistics"]
    assert seen["preview"] == created["preview"]
    assert seen["columns"]["instruction"] == "prompt"
    broken = {"file": SimpleUploadedFile("rows.jsonl", b"{")}
    problem(
        engineer.post(f"{API}/datasets/inspect", broken, format="multipart"),
        422,
        "dataset-refused",
    )


def test_the_rows_of_a_split_can_be_had(engineer: APIClient, company: Company) -> None:
    answer = engineer.get(f"{API}/dataset-versions/{company.dataset.uid}/rows?split=train")
    content = body_of(answer)
    digest = company.dataset.artifact.tree["train.jsonl"]
    assert f"sha256:{hashlib.sha256(content).hexdigest()}" == digest
    assert 'filename="addresses-v1-train.jsonl"' in answer["Content-Disposition"]
    refused = engineer.get(f"{API}/dataset-versions/{company.dataset.uid}/rows?split=all")
    assert "all" in wrong_fields(refused)["split"]


def test_another_teams_dataset_is_not_found(stranger: APIClient, company: Company) -> None:
    version = company.dataset
    for path in (
        f"datasets/{version.dataset.uid}",
        f"dataset-versions/{version.uid}",
        f"dataset-versions/{version.uid}/rows",
        f"artifacts/{version.artifact.uid}",
        f"artifacts/{version.artifact.uid}/files/train.jsonl",
    ):
        problem(stranger.get(f"{API}/{path}"), 404, "not-found")
    assert stranger.get(f"{API}/dataset-versions").json()["results"] == []


def test_a_viewer_may_not_upload(viewer: APIClient) -> None:
    refused = problem(upload(viewer, rows(5).getvalue()), 403, "permission-refused")
    assert "contribute" in refused["detail"]
    assert "viewer" in refused["detail"]


def test_nobody_uploads_into_another_team(stranger: APIClient, company: Company) -> None:
    refused = upload(stranger, rows(5).getvalue(), team=company.team.uid)
    assert "visible to you" in wrong_fields(refused)["team"]


def test_a_folder_is_registered_and_imported(
    engineer: APIClient, company: Company, tmp_path: Path
) -> None:
    folder = write_model(tmp_path / "models" / "tiny")
    folders = engineer.get(f"{API}/model-versions/folders").json()
    assert folders == [{"name": "tiny", "path": str(folder)}]
    body = {"name": "fresh", "path": str(folder)}
    created = engineer.post(f"{API}/model-versions/import", body).json()
    assert (created["state"], created["architecture"]) == ("importing", "Qwen2ForCausalLM")
    folder_imports_reconcile(at=timezone.now())
    shown = engineer.get(f"{API}/model-versions/{created['uid']}").json()
    assert (shown["state"], shown["parameters"]) == ("ready", 64)
    files = engineer.get(f"{API}/artifacts/{shown['artifact']}").json()["files"]
    assert [file["path"] for file in files] == ["config.json", "model.safetensors"]
    config = engineer.get(f"{API}/artifacts/{shown['artifact']}/files/config.json")
    assert json.loads(body_of(config))["architectures"] == ["Qwen2ForCausalLM"]


def test_a_folder_outside_of_the_roots_is_refused(engineer: APIClient, tmp_path: Path) -> None:
    folder = write_model(tmp_path / "elsewhere")
    refused = engineer.post(f"{API}/model-versions/import", {"name": "fresh", "path": str(folder)})
    assert "is outside the model roots" in problem(refused, 422, "model-refused")["detail"]


def test_a_failed_import_says_why_and_can_be_tried_again(
    engineer: APIClient, viewer: APIClient, tmp_path: Path
) -> None:
    folder = write_model(tmp_path / "models" / "tiny")
    body = {"name": "fresh", "path": str(folder)}
    created = engineer.post(f"{API}/model-versions/import", body).json()
    config = (folder / "config.json").read_bytes()
    (folder / "config.json").unlink()
    folder_imports_reconcile(at=timezone.now())
    address = f"{API}/model-versions/{created['uid']}"
    shown = engineer.get(address).json()
    assert (shown["state"], "config.json" in shown["state_reason"]["message"]) == ("failed", True)
    (folder / "config.json").write_bytes(config)
    problem(viewer.post(f"{address}/retry"), 403, "permission-refused")
    assert engineer.post(f"{address}/retry").json()["state"] == "importing"
    problem(engineer.post(f"{address}/retry"), 409, "illegal-transition")
    folder_imports_reconcile(at=timezone.now())
    assert engineer.get(address).json()["state"] == "ready"


def trained(company: Company, **changes: Any) -> ModelVersion:
    """A version that was made from the company's model and dataset."""
    version = ready_model(team=company.team, name="parser")
    fields = {"base": company.model, "dataset_version": company.dataset, **changes}
    ModelVersion.objects.filter(pk=version.pk).update(**fields)
    version.refresh_from_db()
    return version


def test_lineage_leads_down_to_the_first_base(engineer: APIClient, company: Company) -> None:
    version = trained(company)
    chain = engineer.get(f"{API}/model-versions/{version.uid}/lineage").json()
    assert [each["name"] for each in chain] == ["parser v1", "tiny v1"]
    assert chain[0]["dataset_version"]["name"] == "addresses v1"
    assert chain[0]["base"]["uid"] == company.model.uid


def test_a_shared_model_is_everybodys_but_its_dataset_stays_unnamed(
    stranger: APIClient, company: Company
) -> None:
    version = trained(company)
    problem(stranger.get(f"{API}/model-versions/{version.uid}"), 404, "not-found")
    version.line.team = None
    version.line.save()
    shown = stranger.get(f"{API}/model-versions/{version.uid}").json()
    assert (shown["team"], shown["dataset_version"]) == (None, None)
    ModelVersion.objects.filter(pk=version.pk).update(
        base=ready_model(team=company.team, name="kept-to-ourselves")
    )
    shown = stranger.get(f"{API}/model-versions/{version.uid}").json()
    assert shown["base"] is None
    chain = stranger.get(f"{API}/model-versions/{version.uid}/lineage").json()
    assert [each["name"] for each in chain] == ["parser v1"]
    refused = stranger.post(f"{API}/model-versions/{version.uid}/retry")
    assert "every team" in problem(refused, 403, "permission-refused")["detail"]


def test_an_evaluation_is_shown_with_its_report(
    engineer: APIClient, stranger: APIClient, company: Company
) -> None:
    origin = job_outputs.OutputOrigin(
        team=company.team, actor=company.engineer, job_uid="0" * 32, attempt_uid="1" * 32
    )
    evaluation = job_outputs.evaluation_register(
        origin=origin,
        model_version=company.model,
        dataset_version=company.dataset,
        split="test",
        files=[stored("report.json", b'{"exact_match": 0.75}')],
        metrics={"exact_match": 0.75},
    )
    listed = engineer.get(f"{API}/evaluations?model_version={company.model.uid}").json()
    assert [each["metrics"] for each in listed["results"]] == [{"exact_match": 0.75}]
    address = f"{API}/evaluations/{evaluation.uid}"
    assert json.loads(body_of(engineer.get(f"{address}/report"))) == {"exact_match": 0.75}
    problem(stranger.get(address), 404, "not-found")
    problem(stranger.get(f"{address}/report"), 404, "not-found")


def test_a_file_that_an_artifact_does_not_have_is_not_found(
    engineer: APIClient, company: Company
) -> None:
    address = f"{API}/artifacts/{company.dataset.artifact.uid}/files"
    for path in ("nothing.txt", "../secrets", "a/../train.jsonl"):
        problem(engineer.get(f"{address}/{path}"), 404, "not-found")
    assert DatasetVersion.objects.count() == 1
