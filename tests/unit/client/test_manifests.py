from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ninefold_client.errors import ManifestError
from ninefold_client.manifests import (
    Difference,
    Manifest,
    differences,
    parse_manifests,
    read_manifests,
)

KINDS = ("Job", "Queue")


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
        ("", "contains no document"),
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
