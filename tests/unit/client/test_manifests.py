from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ninefold_client.errors import ManifestError
from ninefold_client.generated.models.deployment_create_request import DeploymentCreateRequest
from ninefold_client.generated.models.finetune_job_submit_request import FinetuneJobSubmitRequest
from ninefold_client.generated.models.patched_dataset_change_request import (
    PatchedDatasetChangeRequest,
)
from ninefold_client.generated.models.priority_class_write_request import PriorityClassWriteRequest
from ninefold_client.generated.models.queue_write_request import QueueWriteRequest
from ninefold_client.generated.models.script_job_submit_request import ScriptJobSubmitRequest
from ninefold_client.kinds import KINDS as ALL_KINDS
from ninefold_client.manifests import (
    Difference,
    Manifest,
    differences,
    parse_manifests,
    read_manifests,
)
from tests.documented_examples import documents_of_pages

KINDS = ("Job", "Queue")
#: Body of the request that creates an object, by its kind, and of a job by the kind of job.
REQUESTS: dict[str, Any] = {
    "Dataset": PatchedDatasetChangeRequest,
    "Deployment": DeploymentCreateRequest,
    "PriorityClass": PriorityClassWriteRequest,
    "Queue": QueueWriteRequest,
    "finetune": FinetuneJobSubmitRequest,
    "script": ScriptJobSubmitRequest,
}


def unknown_fields(manifest: Manifest) -> dict[str, Any]:
    """Return the fields of a document that the request of its kind does not have, or has in another form.

    :raises ValueError: if a value is not one of the known ones.
    """
    key = manifest.spec["kind"] if manifest.kind == "Job" else manifest.kind
    # The client uploads the file of a dataset, and looks the model version of a job up.
    given = {"name": manifest.name, **manifest.spec} | (
        {"model_version": "x"} if "model_version" in manifest.spec else {}
    )
    given.pop("file", None)
    sent = REQUESTS[key].from_dict(given).to_dict()
    return dict(_missing(given, sent))


def _missing(given: Any, sent: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(given, dict) and isinstance(sent, dict):
        for name, value in given.items():
            yield from _missing(value, sent.get(name, ...), f"{path}.{name}")
    elif isinstance(given, list) and isinstance(sent, list):
        for one, other in zip(given, sent, strict=True):
            yield from _missing(one, other, f"{path}[]")
    elif given != sent:
        yield path, given


def test_the_documents_of_the_pages_have_fields_of_the_api() -> None:
    faulty = {}
    texts = documents_of_pages()
    assert {name.split(",")[0] for name in texts} == {
        "docs/cli.md",
        "docs/gitops/company/queues.yaml",
    }
    for where, text in texts.items():
        for manifest in parse_manifests(text, source=where, kinds=ALL_KINDS):
            if unknown := unknown_fields(manifest):
                faulty[f"{where}: {manifest}"] = unknown
    assert not faulty


def test_a_misspelt_field_of_a_document_is_found() -> None:
    (queue,) = parsed(document(kind="Queue", spec={"entitlements": [{"chip": "cpu", "kap": 1}]}))
    assert unknown_fields(queue) == {".entitlements[].kap": 1}
    spec = {"kind": "finetune", "spec": {"max_stepz": 2}, "cardz": 1}
    (job,) = parsed(document(spec=spec))
    assert unknown_fields(job) == {".spec.max_stepz": 2, ".cardz": 1}


def parsed(text: str) -> list[Manifest]:
    return parse_manifests(text, source="x.yaml", kinds=KINDS)


def document(**changes: Any) -> str:
    base = {"apiVersion": "ninefold/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": {}}
    return yaml.safe_dump({**base, **changes})


def test_only_managed_fields_are_compared() -> None:
    live = {"weight": 1.0, "spec": {"epochs": 3, "seed": 7}, "chips": ["cpu"], "team": "maps"}
    wanted = {"weight": 1, "spec": {"epochs": 4}, "chips": ["cpu", "any"], "note": None}
    assert list(differences(wanted, live)) == [
        Difference(field="spec.epochs", before=3, after=4),
        Difference(field="chips", before=["cpu"], after=["cpu", "any"]),
    ]
    assert list(differences({"spec": {"epochs": 3}}, live)) == []
    assert list(differences({"new": 0}, live)) == [Difference(field="new", before=None, after=0)]


def test_a_printed_document_reads_back() -> None:
    manifest = Manifest(kind="Queue", name="vision", team="maps", spec={"weight": 2})
    (again,) = parsed(yaml.safe_dump(manifest.as_document()))
    assert (again.kind, again.name, again.team, again.spec) == (
        "Queue",
        "vision",
        "maps",
        {"weight": 2},
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "document 1 is not a mapping"),
        ("a: [", "not valid YAML"),
        (document(apiVersion="v1"), "apiVersion is 'v1'; it must be 'ninefold/v1'"),
        (document(kind="Pod"), "kind is 'Pod'; it must be one of Job, Queue"),
        (document(metadata={}), "metadata.name is missing"),
        (document(metadata={"name": "a", "owner": "x"}), "unknown field metadata.owner"),
        (document(metadata={"name": "a", "labels": {"x": "y"}}), "labels is not stored"),
        (document(spec=[1]), "spec is .* it must be a mapping"),
        (document(status={}), "unknown field status"),
        (
            f"{document()}---\n{document()}",
            "Job/a is declared twice; the first is in x.yaml, document 1",
        ),
    ],
)
def test_an_invalid_document_is_refused_with_the_fix(text: str, message: str) -> None:
    with pytest.raises(ManifestError, match=message):
        parsed(text)


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.yml").write_text(document(metadata={"name": "b"}))
    (tmp_path / "a.yaml").write_text(document())
    (tmp_path / "sub" / "c.json").write_text(
        '{"apiVersion": "ninefold/v1", "kind": "Queue", "metadata": {"name": "c"}}'
    )
    (tmp_path / "notes.txt").write_text("no document")
    assert [one.name for one in read_manifests(tmp_path, kinds=KINDS)] == ["a", "b", "c"]
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ManifestError, match=r"contains no \.yaml"):
        read_manifests(empty, kinds=KINDS)
    (empty / "none.yaml").write_text("# nothing yet\n---\n")
    with pytest.raises(ManifestError, match="empty contains no document"):
        read_manifests(empty, kinds=KINDS)
    assert read_manifests(empty / "none.yaml", kinds=KINDS) == []
