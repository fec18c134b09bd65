"""Datasets and models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from ninefold_client.client import Client
from ninefold_client.errors import ManifestError
from ninefold_client.kinds.base import Kind, folder_of, picked, without_empty
from ninefold_client.manifests import Difference, Manifest, differences


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
    """A model; ``source`` is where its newest imported version comes from."""

    name = "Model"
    deletion_blocked_by = frozenset({"Deployment", "Model"})
    has_team = True
    not_created = "a model is created by a job or pipeline, or by a document with spec.source"

    def reason_not_created(self, manifest: Manifest) -> str:
        return "" if manifest.is_import else self.not_created

    def details(self, row: Mapping[str, Any]) -> dict[str, Any]:
        newest = next(self._imported_versions(row, states=_IMPORTED), None)
        return {**super().details(row), "import_source": newest and newest["import_source"]}

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        source = row["import_source"]
        return {
            **picked(row, "description"),
            "source": source and without_empty(picked(source, *_HUB_FIELDS, "path")),
        }

    def comparable(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in spec.items() if name != "source"}

    def more_differences(
        self, manifest: Manifest, row: Mapping[str, Any] | None
    ) -> Iterable[Difference]:
        if not manifest.is_import:
            return
        source = row["import_source"] if row else None
        yield from differences(
            {"source": _as_imported(checked_source(manifest.spec["source"]), source)},
            {"source": source},
        )

    def body(self, manifest: Manifest, resolved: Mapping[str, str]) -> dict[str, Any]:
        body = super().body(manifest, resolved)
        if manifest.is_import:
            body["source"] = checked_source(body["source"])
        return body

    def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        # Before the import: the other fields are sent after it.
        if unknown := sorted(body.keys() - {"name", "team", "source", "description"}):
            raise ManifestError(
                f"unknown field spec.{unknown[0]}; a model is created from description and source"
            )
        version = import_model_version(
            self.client,
            name=str(body["name"]),
            source=body["source"],
            team=str(body.get("team") or ""),
        )
        model: Mapping[str, Any] = version["model"]
        if body.get("description") and not self.client.dry_run:
            super().change(model, body, frozenset({"description"}))
        return model

    def change(
        self, row: Mapping[str, Any], body: Mapping[str, Any], changed: frozenset[str]
    ) -> None:
        if "source" in changed:
            if row["team"] is None:
                raise ManifestError(
                    f"{row['name']} is available to all teams, and a version is imported into the model of a "
                    "team; set metadata.team, or give the model another name"
                )
            import_model_version(
                self.client, name=row["name"], source=body["source"], team=row["team"]["uid"]
            )
        if changed - {"source"}:
            super().change(row, body, changed - {"source"})

    def imported_version(self, manifest: Manifest, *, uid: str, just_started: bool) -> str:
        """Return the uid of the newest version of the model that comes from the source of the document.

        :param uid: of the model.
        :param just_started: whether it may have failed; else an earlier version is meant.
        :raises ManifestError: if it was deleted meanwhile.
        """
        states = (*_IMPORTED, "failed") if just_started else _IMPORTED
        for version in self._imported_versions(self.client.get(f"models/{uid}"), states=states):
            wanted = _as_imported(checked_source(manifest.spec["source"]), version["import_source"])
            if not list(differences(wanted, version["import_source"])):
                return str(version["uid"])
        raise ManifestError(f"{manifest}: the imported version was deleted")

    def _imported_versions(
        self, row: Mapping[str, Any], *, states: Iterable[str]
    ) -> Iterator[dict[str, Any]]:
        """Iterate over the imported versions of a model in these states, newest first."""
        team = {"team": row["team"]["uid"]} if row["team"] else {}
        for version in self.client.list_all(
            "model-versions", model=row["name"], state=list(states), **team
        ):
            if version["model"]["uid"] == row["uid"] and version.get("import_source"):
                yield version


#: States of versions that a document does not import again.
_IMPORTED = ("importing", "ready")
_HUB_FIELDS = ("hub", "repository", "revision")


def checked_source(source: Any) -> dict[str, str]:
    """Return the source of a document as REST has it.

    :raises ManifestError: if it is neither a repository of a hub nor a folder.
    """
    given = without_empty(source) if isinstance(source, Mapping) else {}
    is_hub = {"hub", "repository"} <= given.keys() <= set(_HUB_FIELDS)
    if not is_hub and given.keys() != {"path"}:
        raise ManifestError(
            f"spec.source is {source!r}; it must be {{path: FOLDER}}, or {{hub: HUB, repository: OWNER/NAME}} "
            "with or without a revision"
        )
    # YAML reads a revision like 1.0 as a number.
    values = {name: str(value) for name, value in given.items()}
    if "path" in values:
        values["path"] = str(PurePosixPath(values["path"]))
    return values


def _as_imported(source: Mapping[str, str], imported: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the source with the revision of the import, if it names the commit that was imported."""
    if imported and source.get("revision") == imported["commit"]:
        return {**source, "revision": imported["revision"]}
    return dict(source)


def import_model_version(
    client: Client, *, name: str, source: Mapping[str, str], team: str
) -> dict[str, Any]:
    """Start the import of a version of a model, and return the version.

    :param source: of :func:`checked_source`.
    :param team: uid of the owning team; empty: the only team of the user.
    :raises ApiError: if the server refuses the source.
    """
    path = "model-versions/import" if "path" in source else "model-versions/fetch"
    body = {"name": name, **source, **({"team": team} if team else {})}
    version: dict[str, Any] = client.post(path, body)
    return version
