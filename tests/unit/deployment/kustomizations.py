"""What ``kustomize build`` makes of our folders: only of the fields that they use, and any other is an error."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

Manifest = dict[str, Any]

ROOT = Path(__file__).resolve().parents[3]
KUBERNETES = ROOT / "docker" / "kubernetes"
OVERLAYS = ("small", "production")
_FILE = "kustomization.yaml"
_KNOWN = {"apiVersion", "kind", "resources", "images", "replicas", "patches"}


def built(folder: Path) -> list[Manifest]:
    """Every object of that folder and of those below it, patched."""
    described = yaml.safe_load((folder / _FILE).read_text())
    assert set(described) <= _KNOWN, f"{folder}: this reads no {set(described) - _KNOWN}"
    found: list[Manifest] = []
    for name in described["resources"]:
        path = folder / name
        found += built(path.resolve()) if path.is_dir() else documents(path)
    for patch in described.get("patches", ()):
        _patch(found, patch)
    for replica in described.get("replicas", ()):
        for each in _of(found, replica["name"], kinds=("Deployment", "StatefulSet")):
            each["spec"]["replicas"] = replica["count"]
    for image in described.get("images", ()):
        for container in (each for one in found for each in containers(one)):
            if container["image"] == image["name"]:
                container["image"] = f"{image['newName']}:{image['newTag']}"
    return found


def documents(path: Path) -> list[Manifest]:
    """The objects of one file; what YAML shares between them is apart in them."""
    return [copy.deepcopy(each) for each in yaml.safe_load_all(path.read_text()) if each]


def containers(manifest: Mapping[str, Any]) -> Iterator[Manifest]:
    """Of its pods, those that prepare first; none if it has no pods."""
    pod = pod_spec(manifest)
    yield from pod.get("initContainers", ())
    yield from pod.get("containers", ())


def pod_spec(manifest: Mapping[str, Any]) -> Manifest:
    """Of the pods that it makes; empty if it makes none."""
    template: Manifest = (manifest.get("spec") or {}).get("template") or {}
    spec: Manifest = template.get("spec") or {}
    return spec


def title(manifest: Mapping[str, Any]) -> str:
    return f"{manifest['kind']}/{manifest['metadata']['name']}"


def _of(found: list[Manifest], name: str, *, kinds: tuple[str, ...]) -> list[Manifest]:
    chosen = [each for each in found if each["kind"] in kinds and each["metadata"]["name"] == name]
    assert chosen, f"there is no {'/'.join(kinds)} called {name}"
    return chosen


def _patch(found: list[Manifest], patch: Mapping[str, Any]) -> None:
    """By RFC 6902; of its operations, those three that we use."""
    target = patch["target"]
    assert set(target) == {"kind", "name"}, target
    for manifest in _of(found, target["name"], kinds=(target["kind"],)):
        for change in yaml.safe_load(patch["patch"]):
            *way, last = (part.replace("~1", "/") for part in change["path"].split("/")[1:])
            place: Any = manifest
            for part in way:
                place = place[int(part) if isinstance(place, list) else part]
            key = int(last) if isinstance(place, list) else last
            there = key < len(place) if isinstance(place, list) else key in place
            assert there or change["op"] == "add", f"{title(manifest)} has no {change['path']}"
            if change["op"] == "remove":
                del place[key]
            else:
                assert change["op"] in ("add", "replace"), change["op"]
                place[key] = change["value"]
