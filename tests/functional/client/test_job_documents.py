"""Documents of jobs: the folder that is uploaded with one, and what is seen of a change."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import yaml
from pytest_django.live_server_helper import LiveServer

from apps.jobs.models import Job
from apps.models.models import Artifact, ArtifactKind
from apps.models.selectors import artifact_store
from ninefold_client.client import Client
from ninefold_client.code_archives import pack_folder
from tests.functional.client.conftest import Ninefold, token_of
from tests.integration.company import Company

SCRIPT = """
apiVersion: ninefold/v1
kind: Job
metadata: {name: train, team: addresses}
spec: {kind: script, code: ./project, cards: 1, spec: {argv: [python, train.py]}}
"""


def test_a_job_uploads_the_folder_of_its_document_once(
    signed_in: Ninefold, live_server: LiveServer, company: Company, tmp_path: Path
) -> None:
    folder = tmp_path / "jobs"
    program = folder / "project"
    program.mkdir(parents=True)
    (folder / "train.yaml").write_text(SCRIPT)
    (program / "train.py").write_text("print('trained')")
    # Not documents: a folder with documents may contain the program.
    (program / "config.yaml").write_text("rate: 0.1")
    (program / "broken.json").write_text("{")
    codes = Artifact.objects.filter(kind=ArtifactKind.CODE)

    shown = signed_in("diff", "-f", str(folder))
    assert "+ code: ./project, 3 files\n" in shown.output, shown.errors
    planned = signed_in("apply", "-f", str(folder), "--dry-run")
    assert planned.output == "Job/train created (dry run)\n", planned.errors
    assert (codes.count(), Job.objects.count()) == (0, 0)

    created = signed_in("apply", "-f", str(folder / "train.yaml"))
    assert created.output == "Job/train created\n", created.errors
    job = Job.objects.get()
    assert job.code is not None
    packed = pack_folder(program)
    with artifact_store().open(job.code.files[0]["digest"]) as stored:
        assert stored.read() == packed.content
    again = signed_in("apply", "-f", str(folder))
    assert again.output == "Job/train unchanged\n", again.errors
    assert (codes.count(), Job.objects.count()) == (1, 1)

    # The same files, as another version of zlib compresses them.
    other = gzip.compress(gzip.decompress(packed.content), compresslevel=1, mtime=1)
    assert other != packed.content
    with Client(live_server.url, token_of(company.engineer)) as client:
        uid = client.upload("code", file=("code.tar.gz", other), fields={"team": "addresses"})[
            "uid"
        ]
    Job.objects.update(code=Artifact.objects.get(uid=uid))
    again = signed_in("apply", "-f", str(folder))
    assert again.output == "Job/train unchanged\n", again.errors

    (program / "train.py").write_text("print('better')")
    changed = signed_in("apply", "-f", str(folder))
    assert changed.exit_code == 1
    assert "give the job another name" in changed.errors
    assert (codes.count(), Job.objects.count()) == (2, 1)
    submitted = signed_in("job", "submit", "-f", str(folder))
    assert submitted.exit_code == 0, submitted.errors
    assert (codes.count(), Job.objects.count()) == (3, 2)


def test_what_is_wrong_with_the_folder_of_a_job_is_said_before_an_upload(
    signed_in: Ninefold, company: Company, tmp_path: Path
) -> None:
    file = tmp_path / "train.yaml"
    (tmp_path / "empty").mkdir()
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "train.py").touch()
    faulty = []
    for document, said in (
        (SCRIPT.replace("./project", "missing"), f"{tmp_path / 'missing'} is not a folder"),
        (SCRIPT.replace("./project", "./empty"), f"{tmp_path / 'empty'} has no file to upload"),
        (SCRIPT.replace("cards: 1", "cards: 1, chips: [tpu]"), "tpu"),
    ):
        file.write_text(document)
        for command in (("diff",), ("apply", "--dry-run"), ("apply",)):
            done = signed_in(*command, "-f", str(file))
            if done.exit_code != 1 or said not in done.errors.replace("\n", " "):
                faulty.append((command, document, done))
    assert not faulty
    assert not Artifact.objects.filter(kind=ArtifactKind.CODE).exists()
    # A file that is no document is refused elsewhere.
    (tmp_path / "config.yaml").write_text("rate: 0.1")
    assert "unknown field rate" in signed_in("diff", "-f", str(tmp_path)).errors


def test_a_changed_priority_class_or_shared_output_of_a_job_is_seen(
    administered: Ninefold, company: Company
) -> None:
    for spec in (
        {"priority_class": "low", "output_shared": True},
        {"priority": -11, "output_shared": False},
    ):
        document: dict[str, Any] = {
            "apiVersion": "ninefold/v1",
            "kind": "Job",
            "metadata": {"name": f"tune {spec['output_shared']}", "team": "addresses"},
            "spec": {
                "kind": "finetune",
                "model_version": "tiny",
                "dataset_version": "addresses",
                "output_name": "parser",
                **spec,
            },
        }
        name = f"Job/{document['metadata']['name']}"
        first = administered("apply", "-f", "-", text=yaml.safe_dump(document))
        assert first.output == f"{name} created\n", first.errors
        printed = administered("get", "job", document["metadata"]["name"], "-o", "yaml").output
        shown = yaml.safe_load(printed)["spec"]
        assert {field: shown[field] for field in ("priority", "priority_class", "output_shared")
                if field in shown} == spec  # fmt: skip
        again = administered("apply", "-f", "-", text=printed)
        assert again.output == f"{name} unchanged\n", again.errors
        document["spec"]["output_shared"] = not spec["output_shared"]
        shared = administered("apply", "-f", "-", text=yaml.safe_dump(document))
        assert "output_shared is" in shared.errors
        document["spec"] |= {"output_shared": spec["output_shared"], "priority_class": "high"}
        document["spec"].pop("priority", None)
        raised = administered("diff", "-f", "-", text=yaml.safe_dump(document))
        assert "priority_class is" in raised.errors, raised


def test_a_job_is_printed_with_its_cards_and_memory(signed_in: Ninefold, company: Company) -> None:
    printed: dict[str, str] = {}
    # Of a chip with 8 cards a node, so 2 replicas.
    wide_request = {"chips": ("nvidia-h800",), "cards": 16, "memory": 2**34}
    for name, request in {"wide": wide_request, "narrow": {}}.items():
        company.submit(name, **request)
        printed[name] = signed_in("get", "job", name, "-o", "yaml").output
        again = signed_in("apply", "-f", "-", text=printed[name])
        assert again.output == f"Job/{name} unchanged\n", again.errors
    wide, narrow = (yaml.safe_load(text)["spec"] for text in printed.values())
    (role,) = Job.objects.get(name="wide").shape
    assert (role["replicas"], role["cards"]) == (2, 8)
    assert (wide["cards"], wide["memory"]) == (16, 2**34)
    assert (narrow["cards"], "memory" in narrow) == (1, False)
    unlimited = printed["narrow"] + "  memory: 0\n"
    assert signed_in("apply", "-f", "-", text=unlimited).output == "Job/narrow unchanged\n"
    for before, after in (("cards: 16", "cards: 8"), (f"memory: {2**34}", "memory: 1")):
        changed = signed_in("apply", "-f", "-", text=printed["wide"].replace(before, after))
        field, _, value = after.partition(": ")
        assert (changed.exit_code, f"cannot be changed to {value}" in changed.errors) == (
            1,
            True,
        ), field

    # A job of the printed document asks for the same.
    copied = printed["wide"].replace("name: wide", "name: copy")
    assert signed_in("apply", "-f", "-", text=copied).output == "Job/copy created\n"
    assert Job.objects.get(name="copy").shape == Job.objects.get(name="wide").shape
