"""What an administrator of a cluster reads is what there is."""

from __future__ import annotations

import re
from dataclasses import fields

from controlplane.adapters.clusters.kubernetes.cluster_profile import ClusterProfile
from tests.unit.deployment.kustomizations import KUBERNETES, ROOT, built
from tests.unit.deployment.rights import Right, granted


def section(heading: str) -> list[list[str]]:
    """The cells of every table line between that heading and the next."""
    text = (ROOT / "docs" / "kubernetes.md").read_text()
    found = re.search(
        rf"^###? {re.escape(heading)}$(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL
    )
    assert found is not None, heading
    lines = (line for line in found[1].splitlines() if line.startswith("| `"))
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def documented() -> set[Right]:
    rights = set()
    for what, verbs, reason in section("Permissions"):
        group, _, resource = what.strip("` ").rpartition(" ")
        assert reason
        rights |= {(group, resource, verb) for verb in re.findall(r"`(\w+)`", verbs)}
    return rights


def test_every_verb_of_the_roles_is_told_with_what_needs_it() -> None:
    folders = ("access", "dra", "mindcluster", "volcano")
    manifests = [manifest for folder in folders for manifest in built(KUBERNETES / folder)]
    assert documented() == granted(manifests)


def test_every_option_of_a_cluster_is_told_and_none_that_there_is_not() -> None:
    options = {row[0].strip("`") for row in section("Options of a cluster")}
    assert options == {field.name for field in fields(ClusterProfile)} | {"in_cluster"}


def test_every_folder_and_file_that_it_names_exists() -> None:
    text = (ROOT / "docs" / "kubernetes.md").read_text()
    for path in re.findall(r"\b(docker/[\w./-]+[\w])", text):
        assert (ROOT / path).exists() or path == "docker/.env", path
    for overlay in re.findall(r"`(overlays/\w+)`", text):
        assert (KUBERNETES / overlay).is_dir(), overlay
