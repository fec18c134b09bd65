"""Models from hubs and folders, by ``ninefold model`` and by documents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
import yaml
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from apps.models.models import HubImport, ModelLine, ModelVersion
from apps.models.reconcilers import folder_imports_reconcile, hub_imports_reconcile
from apps.workflows.models import Pipeline
from controlplane.domain.registry.versions import ModelState
from tests.functional.client.conftest import CommandResult, Ninefold
from tests.hubs import COMMIT, LocalHub
from tests.integration.company import Company, model_contents, safetensors, write_model

REPOSITORY = "Maker/Small-Model"
IMPORT = ("model", "import", REPOSITORY, "--hub", "huggingface", "--name", "small")
#: Not those of the company's model, which would not be downloaded again.
WEIGHTS = safetensors(embed=(9, 4))
DAMAGED = WEIGHTS[:-1] + b"x"
SMALL = {"hub": "huggingface", "repository": REPOSITORY}


@pytest.fixture
def hub(hub: LocalHub) -> LocalHub:
    hub.repositories[REPOSITORY] = {**model_contents(), "model.safetensors": WEIGHTS}
    return hub


@pytest.fixture
def roots(tmp_path: Path, settings: Settings) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    settings.NINEFOLD_MODEL_ROOTS = [str(folder)]
    return folder


@contextmanager
def imports_reconciled() -> Iterator[None]:
    """Run the controllers of imports in another thread."""
    ended = Event()

    def run() -> None:
        while not ended.wait(0.05):
            folder_imports_reconcile(at=timezone.now())
            hub_imports_reconcile(at=timezone.now())
        connection.close()

    thread = Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def document(name: str = "small", **spec: object) -> str:
    metadata = {"name": name, "team": "addresses"}
    return yaml.safe_dump(
        {"apiVersion": "ninefold/v1", "kind": "Model", "metadata": metadata, "spec": spec}
    )


def applied(ninefold: Ninefold, text: str, *options: str) -> CommandResult:
    return ninefold("apply", "-f", "-", *options, text=text)


def test_a_repository_is_imported_and_waited_for(signed_in: Ninefold, hub: LocalHub) -> None:
    with imports_reconciled():
        done = signed_in(*IMPORT, "--wait")
    assert (done.exit_code, done.errors) == (0, "")
    version = ModelVersion.objects.get(line__name="small")
    started, *progress = done.output.splitlines()
    assert started == f"model/small version 1 import started: {version.uid}"
    assert progress[-1].endswith("small v1  ready  files copied: 2")
    assert (version.state, version.hub_import.revision) == (ModelState.READY, "main")

    with imports_reconciled():
        printed = signed_in(*IMPORT, "--revision", COMMIT, "--wait", "-o", "json")
    shown = json.loads(printed.output)
    assert (shown["name"], shown["state"]) == ("small v2", "ready")
    assert shown["import_source"] == {**SMALL, "revision": COMMIT, "commit": COMMIT, "path": None}
    assert "small v2  ready" in printed.errors
    named = signed_in(*IMPORT, "--team", "addresses", "-o", "name")
    assert named.output == "model-version/small v3\n"


def test_a_folder_is_imported_by_the_path_that_was_given(
    signed_in: Ninefold, company: Company, roots: Path
) -> None:
    write_model(roots / "tiny-2026")
    (roots / "tiny").symlink_to(roots / "tiny-2026")
    with imports_reconciled():
        done = signed_in("model", "import", "--path", f"{roots}/tiny/", "--name", "own", "--wait")
    assert (done.exit_code, done.errors) == (0, "")
    version = ModelVersion.objects.get(line__name="own")
    assert (version.state, version.source_path) == (ModelState.READY, f"{roots}/tiny")


def test_what_is_refused_is_said_before_anything_is_created(
    signed_in: Ninefold, hub: LocalHub, roots: Path, tmp_path: Path
) -> None:
    elsewhere = write_model(tmp_path / "elsewhere")
    path, name = ("--path", str(elsewhere)), ("--name", "small")
    refused = {
        ("Maker/Nothing", "--hub", "huggingface", *name): "Maker/Nothing",
        ("nothing", "--hub", "huggingface", *name): "a repository must be owner/name",
        (REPOSITORY, "--hub", "nowhere", *name): "nowhere",
        (*path, *name): f"is outside the model roots: {roots}",
        (*path, "--name", "not a slug"): "name:",
        (*path, *name, "--team", "nothing"): "no team 'nothing'",
    }
    faulty = {}
    for arguments, message in refused.items():
        done = signed_in("model", "import", *arguments)
        if done.exit_code != 1 or message not in done.errors:
            faulty[arguments] = done
    for usage in ((REPOSITORY, *name), (*path, *name, "--hub", "huggingface"), name, path):
        done = signed_in("model", "import", *usage)
        if done.exit_code != 2:
            faulty[usage] = done
    assert not faulty
    assert not ModelVersion.objects.filter(line__name="small").exists()


def test_a_failed_import_says_why_and_is_retried(signed_in: Ninefold, hub: LocalHub) -> None:
    hub.damaged["model.safetensors"] = DAMAGED
    with imports_reconciled():
        failed = signed_in(*IMPORT, "--wait")
    assert failed.exit_code == 1
    assert "small v1 is failed: model.safetensors is damaged: its digest is" in failed.errors
    assert "Retry with: ninefold model retry small@1" in failed.errors
    hub.damaged.clear()
    with imports_reconciled():
        done = signed_in("model", "retry", "small", "--wait")
    assert (done.exit_code, done.errors) == (0, "")
    assert done.output.startswith("model/small version 1 import restarted: ")
    again = signed_in("model", "retry", "small")
    assert "no failed version of a model is 'small'" in again.errors


def test_an_import_is_cancelled_and_not_waited_for_too_long(
    signed_in: Ninefold, hub: LocalHub
) -> None:
    late = signed_in(*IMPORT, "--wait", "--timeout", "1")
    assert (late.exit_code, "small v1 is importing after 1 seconds" in late.errors) == (1, True)
    assert "small v1  importing  0 % of " in late.output
    done = signed_in("model", "cancel", "small")
    assert done.output.startswith("model/small version 1 import cancelled: "), done.errors
    assert ModelVersion.objects.get(line__name="small").state == ModelState.FAILED
    assert signed_in("model", "cancel", "small@1").exit_code == 1


def test_a_document_imports_a_model_before_what_uses_it(
    signed_in: Ninefold, hub: LocalHub, company: Company
) -> None:
    source = {**SMALL, "revision": "main"}
    model = document(description="from its maker", source=source)
    dataset = f"{company.dataset.dataset.name}@1"
    pipeline = yaml.safe_dump(
        {
            "apiVersion": "ninefold/v1",
            "kind": "Pipeline",
            "metadata": {"name": "whole way", "team": "addresses"},
            "spec": {
                "model_version": "small",
                "steps": [
                    {"kind": "finetune", "dataset_version": dataset, "output_name": "parser"}
                ],
            },
        }
    )
    text = f"{pipeline}---\n{model}"
    planned = applied(signed_in, text, "--dry-run")
    assert planned.output.splitlines() == [
        "Model/small created (dry run)",
        "Pipeline/whole way created (dry run)",
    ], planned.errors
    assert not ModelLine.objects.filter(name="small").exists()

    with imports_reconciled():
        done = applied(signed_in, text, "--wait")
    assert (done.exit_code, done.errors) == (0, "")
    first, *_, last = done.output.splitlines()
    assert (first, last) == ("Model/small created", "Pipeline/whole way created")
    assert Pipeline.objects.get().model_version.line.name == "small"
    assert ModelLine.objects.get(name="small").description == "from its maker"

    printed = signed_in("get", "model", "small", "-o", "yaml").output
    assert yaml.safe_load(printed)["spec"] == {"description": "from its maker", "source": source}
    pinned = document(source={**SMALL, "revision": COMMIT})
    for same in (text, printed, document(source=SMALL), pinned):
        again = applied(signed_in, same, "--wait")
        assert "Model/small unchanged" in again.output, again
    assert ModelVersion.objects.filter(line__name="small").count() == 1


def test_another_revision_imports_a_version_and_jobs_do_not_count(
    signed_in: Ninefold, hub: LocalHub, company: Company
) -> None:
    hub.revisions["v2.0"] = "2b" * 20
    with imports_reconciled():
        assert applied(signed_in, document(source=SMALL), "--wait").exit_code == 0
        changed = document(source={**SMALL, "revision": "v2.0"})
        shown = signed_in("diff", "-f", "-", "--exit-code", text=changed)
        assert shown.exit_code == 1
        assert "- source.revision: main\n+ source.revision: v2.0\n" in shown.output
        assert ModelVersion.objects.filter(line__name="small").count() == 1
        done = applied(signed_in, changed, "--wait")
    assert done.output.startswith("Model/small configured\n"), done
    assert done.output.splitlines()[-1].endswith("small v2  ready  files copied: 2")
    line = ModelLine.objects.get(name="small")
    line.versions.create(number=3, state=ModelState.READY, job_uid="1" * 32)
    assert applied(signed_in, changed).output == "Model/small unchanged\n"
    described = document(source={**SMALL, "revision": "v2.0"}, description="newer")
    assert applied(signed_in, described).output == "Model/small configured\n"
    assert (line.versions.count(), HubImport.objects.count()) == (3, 2)


def test_a_document_of_a_failed_import_starts_it_again(signed_in: Ninefold, hub: LocalHub) -> None:
    hub.damaged["model.safetensors"] = DAMAGED
    text = document(source=SMALL)
    with imports_reconciled():
        failed = applied(signed_in, text, "--wait")
        assert failed.exit_code == 1
        assert "Model/small: Error: small v1 is failed: model.safetensors is" in failed.errors
        assert "source" not in signed_in("get", "model", "small", "-o", "yaml").output
        hub.damaged.clear()
        done = applied(signed_in, text, "--wait")
    assert (done.exit_code, done.errors) == (0, "")
    assert done.output.splitlines()[-1].endswith("small v2  ready  files copied: 2")


def test_a_document_of_a_folder_stays_unchanged_when_the_folder_is_gone(
    signed_in: Ninefold, company: Company, roots: Path
) -> None:
    folder = write_model(roots / "tiny-2026")
    (roots / "tiny").symlink_to(folder)
    text = document(source={"path": f"{roots}/tiny/"})
    with imports_reconciled():
        assert applied(signed_in, text, "--wait").exit_code == 0
    (roots / "tiny").unlink()
    assert applied(signed_in, text).output == "Model/small unchanged\n"
    printed = signed_in("get", "models", "-o", "yaml").output
    outcomes = applied(signed_in, printed).output.splitlines()
    assert outcomes == ["Model/small unchanged", "Model/tiny unchanged"]
    moved = applied(signed_in, document(source={"path": str(roots / "nothing")}), "--dry-run")
    assert (moved.exit_code, "is not a folder" in moved.errors) == (1, True)


def test_a_source_that_cannot_be_imported_is_refused_with_the_fix(
    signed_in: Ninefold, hub: LocalHub, company: Company
) -> None:
    ModelLine.objects.create(team=None, name="shared")
    shared = document("shared", source=SMALL).replace("  team: addresses\n", "")
    refused = {
        document(): "or by a document with spec.source",
        document(source="Maker/Small-Model"): "it must be {path: FOLDER}, or {hub: HUB",
        document(source={**SMALL, "path": "/x"}): "it must be {path: FOLDER}, or {hub: HUB",
        document(source={**SMALL, "revison": "x"}): "it must be {path: FOLDER}, or {hub: HUB",
        document(source={**SMALL, "revision": "v9"}): "v9",
        document(source=SMALL, licence="MIT"): "unknown field spec.licence",
        shared: "shared is available to all teams",
    }
    faulty = {}
    for text, message in refused.items():
        for options in ((), ("--dry-run",)):
            done = applied(signed_in, text, *options)
            if done.exit_code != 1 or message not in done.errors:
                faulty[text] = done
    assert not faulty
    assert not HubImport.objects.exists()
