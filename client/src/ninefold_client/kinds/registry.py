"""Datasets and models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ninefold_client.errors import ManifestError
from ninefold_client.kinds.base import Kind, folder_of, picked
from ninefold_client.manifests import Difference, Manifest


class DatasetKind(Kind):
    """A dataset; ``file`` has the examples of a version, its path is relative to the document."""

    name = "Dataset"
    has_team = True

    def details(self, row: Mapping[str, Any]) -> dict[str, Any]:
        versions = list(self.client.list_all("dataset-versions", dataset=row["uid"]))
        return {**super().details(row), "all_versions": versions}

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return picked(row, "description")

    def comparable(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in spec.items() if name != "file"}

    def more_differences(
        self, manifest: Manifest, row: Mapping[str, Any] | None
    ) -> Iterable[Difference]:
        if "file" not in manifest.spec:
            return
        path, content = _content(manifest)
        inspected: Mapping[str, Any] = self.client.upload(
            "datasets/inspect", file=(path.name, content), fields={}
        )
        versions = row["all_versions"] if row else []
        if inspected["content_hash"] not in {one["content_hash"] for one in versions}:
            before = f"{versions[0]['row_count']} examples" if versions else None
            after = f"{manifest.spec['file']}, {inspected['rows']} examples"
            yield Difference(field="file", before=before, after=after)

    def change(
        self, row: Mapping[str, Any], body: Mapping[str, Any], changed: frozenset[str]
    ) -> None:
        if "file" in changed:
            self._upload(body, team=row["team"]["uid"])
        if changed - {"file"}:
            super().change(row, body, changed - {"file"})

    def body(self, manifest: Manifest, resolved: Mapping[str, str]) -> dict[str, Any]:
        body = super().body(manifest, resolved)
        if "file" in body:
            body["file"] = _content(manifest)
        return body

    def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        if "file" not in body:
            raise ManifestError(
                f"Dataset/{body['name']}: spec.file is missing; a dataset is created from a file of examples"
            )
        return self._upload(body, team=str(body.get("team") or ""))

    def _upload(self, body: Mapping[str, Any], *, team: str) -> Mapping[str, Any]:
        path, content = body["file"]
        fields = {name: str(body[name]) for name in ("name", "description") if body.get(name)}
        version = self.client.upload(
            "datasets",
            file=(path.name, content),
            fields={**fields, **({"team": team} if team else {})},
        )
        dataset: Mapping[str, Any] = version["dataset"]
        return dataset


def _content(manifest: Manifest) -> tuple[Path, bytes]:
    path = folder_of(manifest) / str(manifest.spec["file"])
    try:
        return path, path.read_bytes()
    except OSError as error:
        raise ManifestError(f"{manifest}: {path} cannot be read: {error.strerror}") from error


class ModelKind(Kind):
    name = "Model"
    deletion_blocked_by = frozenset({"Deployment", "Model"})
    has_team = True
    not_created = "a model is created by the job, pipeline or import with its first version"

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return picked(row, "description")
