"""Jobs, pipelines, deployments, routes and gateway keys."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, ClassVar

from ninefold_client.client import Client
from ninefold_client.code_archives import CodeArchive, is_stored_as, pack_folder, upload_archive
from ninefold_client.errors import ApiError, ManifestError, NinefoldError
from ninefold_client.kinds.base import Kind, name_of, picked
from ninefold_client.manifests import Difference, Manifest, is_code_folder
from ninefold_client.resources import (
    DEPLOYMENTS,
    find_dataset_version,
    find_model_version,
    find_object,
    split_version,
)

#: Seconds until a deleted deployment has no processes any more.
_STOPPED_WITHIN = 300.0


class JobKind(Kind):
    """A job; its ``code`` is the uid of an archive, or a folder relative to the document, which is uploaded."""

    name = "Job"
    has_team = True
    write_only = frozenset({"secret_variables"})
    immutable = frozenset({"*"})
    not_deleted = "jobs stay as records; a running one is cancelled by: ninefold job cancel"
    references: ClassVar = {
        "model_version": find_model_version,
        "dataset_version": find_dataset_version,
    }

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._archives: dict[Path, CodeArchive] = {}

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **picked(
                row,
                "kind",
                "engine",
                "spec",
                "code",
                "output_name",
                "output_shared",
                "queue",
                "priority",
                "priority_class",
                "run_seconds",
            ),
            "model_version": name_of(row["model_version"]),
            "dataset_version": name_of(row["dataset_version"]),
            "chips": row["asked_chips"] or row["chips"],
            "cards": sum(role["replicas"] * role["cards"] for role in row["shape"]),
            # Of each replica; 0, the default, is no limit.
            "memory": max(role["memory"] for role in row["shape"]) or None,
            "retry_policy": row["retry_policy"],
        }

    def manifest_of(self, row: Mapping[str, Any]) -> Manifest:
        manifest = super().manifest_of(row)
        if "priority_class" not in manifest.spec:
            return manifest
        # The server refuses both.
        spec = {name: value for name, value in manifest.spec.items() if name != "priority"}
        return replace(manifest, spec=spec)

    def comparable(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        wanted = {
            name: value
            for name, value in spec.items()
            if name != "code" or not is_code_folder(value)
        }
        if wanted.get("memory") == 0:
            wanted["memory"] = None
        return wanted

    def more_differences(
        self, manifest: Manifest, row: Mapping[str, Any] | None
    ) -> Iterable[Difference]:
        if (folder := manifest.code_folder) is None:
            return
        archive, before = self._archive(folder), row["code"] if row else None
        if before is None or not is_stored_as(self.client, archive, before):
            files = "1 file" if len(archive.files) == 1 else f"{len(archive.files)} files"
            after = f"{manifest.spec['code']}, {files}"
            yield Difference(field="code", before=before, after=after)

    def body(self, manifest: Manifest, resolved: Mapping[str, str]) -> dict[str, Any]:
        body = super().body(manifest, resolved)
        if (folder := manifest.code_folder) is not None:
            body["code"] = self._archive(folder)
        return body

    def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        code = body.get("code")
        if not isinstance(code, CodeArchive):
            return super().create(body)
        # First: what would be refused is not uploaded.
        without_code = {name: value for name, value in body.items() if name != "code"}
        validated: Mapping[str, Any] = self.client.as_dry_run().post(self.path, without_code)
        if self.client.dry_run:
            return validated
        uid = upload_archive(self.client, code, team=str(body.get("team") or ""))
        return super().create({**body, "code": uid})

    def _archive(self, folder: Path) -> CodeArchive:
        """Return the packed folder; it is packed once."""
        if folder not in self._archives:
            self._archives[folder] = pack_folder(folder)
        return self._archives[folder]


class PipelineKind(Kind):
    name = "Pipeline"
    has_team = True
    immutable = frozenset({"*"})
    not_deleted = "pipelines stay as records"
    references: ClassVar = {"model_version": find_model_version}
    _step_fields = (
        "kind",
        "engine",
        "spec",
        "chips",
        "cards",
        "output_name",
        "deployment_name",
        "replicas",
        "gate",
    )

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        steps = []
        for step in row["steps"]:
            fields = {
                **picked(step, *self._step_fields),
                "dataset_version": name_of(step["dataset_version"]),
            }
            steps.append({name: value for name, value in fields.items() if value not in _EMPTY})
        return {
            "model_version": name_of(row["model_version"]),
            "queue": row["queue"],
            "steps": steps,
        }

    def comparable(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        wanted = dict(spec)
        if isinstance(wanted.get("steps"), list):
            wanted["steps"] = [self._comparable_step(one) for one in wanted["steps"]]
        return wanted

    def _comparable_step(self, step: Mapping[str, Any]) -> dict[str, Any]:
        wanted = {name: value for name, value in step.items() if value not in _EMPTY}
        if "dataset_version" in wanted:
            given = str(wanted["dataset_version"])
            name, number = split_version(given.rpartition("/")[2])
            found = (
                f"{name} v{number}" if number else find_dataset_version(self.client, given)["name"]
            )
            wanted["dataset_version"] = found
        return wanted

    def body(self, manifest: Manifest, resolved: Mapping[str, str]) -> dict[str, Any]:
        body = super().body(manifest, resolved)
        if isinstance(body.get("steps"), list):
            body["steps"] = [self._step_body(one, team=manifest.team) for one in body["steps"]]
        return body

    def _step_body(self, step: Mapping[str, Any], *, team: str) -> dict[str, Any]:
        if step.get("dataset_version") is None:
            return dict(step)
        found = find_dataset_version(self.client, str(step["dataset_version"]), team=team)
        return {**step, "dataset_version": found["uid"]}


_EMPTY: tuple[Any, ...] = (None, "", [], {}, 0)


class DeploymentKind(Kind):
    name = "Deployment"
    has_team = True
    immutable = frozenset({"queue"})
    deletion_blocked_by = frozenset({"Route"})
    deletion_interrupts = True
    references: ClassVar = {"model_version": find_model_version}
    _revision: ClassVar = ("model_version", "engine", "spec", "chips", "cards", "adapters")

    _strategy: ClassVar = ("max_surge", "max_unavailable")

    def live_reference(self, row: Mapping[str, Any], field: str) -> Mapping[str, Any] | None:
        return super().live_reference(_wanted_revision(row), field)

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        newest = _wanted_revision(row)
        return {
            "model_version": name_of(newest["model_version"]),
            **picked(newest, "engine", "spec", "chips", "cards"),
            "adapters": _sorted_adapters(
                {"name": one["name"], "model_version": name_of(one["model_version"])}
                for one in newest.get("adapters") or ()
            ),
            "queue": row["queue"],
            "replicas": row["replica_count"],
            **picked(row, *self._strategy),
        }

    def comparable(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        wanted = dict(spec)
        for name in self._strategy:
            if isinstance(wanted.get(name), int):
                wanted[name] = str(wanted[name])
        if isinstance(wanted.get("adapters"), list):
            wanted["adapters"] = _sorted_adapters(wanted["adapters"])
        return wanted

    def body(self, manifest: Manifest, resolved: Mapping[str, str]) -> dict[str, Any]:
        body = super().body(manifest, resolved)
        if "adapters" in body:
            body["adapters"] = [self._adapter_body(manifest, one) for one in body["adapters"] or ()]
        return body

    def _adapter_body(self, manifest: Manifest, adapter: Any) -> dict[str, Any]:
        if not isinstance(adapter, Mapping) or not {"name", "model_version"} <= adapter.keys():
            raise ManifestError(
                f"{manifest}: spec.adapters has {adapter!r}; each entry needs name and model_version"
            )
        found = find_model_version(self.client, str(adapter["model_version"]), team=manifest.team)
        return {**adapter, "model_version": found["uid"]}

    def change(
        self, row: Mapping[str, Any], body: Mapping[str, Any], changed: frozenset[str]
    ) -> None:
        if strategy := {name: body[name] for name in self._strategy if name in changed}:
            self.client.patch(f"{self.path}/{row['uid']}", strategy)
        if changed & set(self._revision):
            revision = {name: body[name] for name in self._revision if name in body}
            self.client.post(f"{self.path}/{row['uid']}/revise", revision)
        if "replicas" in changed:
            self.client.post(f"{self.path}/{row['uid']}/scale", {"replicas": body["replicas"]})

    def delete(self, uid: str) -> None:
        """Delete the deployment, and wait until its replicas have stopped, except in a dry run.

        :raises NinefoldError: if they do not stop in time.
        """
        self.client.delete(f"{self.path}/{uid}")
        if self.client.dry_run:
            return
        until = time.monotonic() + _STOPPED_WITHIN
        while (row := self._remaining(uid)) is not None:
            if time.monotonic() > until:
                raise NinefoldError(
                    f"deployment {row['name']} is {row['state']} {_STOPPED_WITHIN:g} seconds after its deletion; "
                    "it disappears when its replicas have stopped"
                )
            time.sleep(0.5)

    def _remaining(self, uid: str) -> dict[str, Any] | None:
        """Return the deployment, or None once it has been deleted."""
        try:
            row: dict[str, Any] = self.client.get(f"{self.path}/{uid}")
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        return row


def _wanted_revision(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """After a failed rollout the newest revision is not the one that the deployment has."""
    wanted = row["rollout"]["revision"]
    found: Mapping[str, Any] = next(one for one in row["revisions"] if one["number"] == wanted)
    return found


class RouteKind(Kind):
    name = "Route"
    not_created = "a route is created with the deployment of its name"
    not_deleted = "a route is deleted with its deployment"

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "backends": _sorted_backends(
                {"deployment": one["deployment"]["name"], "weight": one["weight"]}
                for one in row["backends"]
            )
        }

    def comparable(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        wanted = dict(spec)
        if isinstance(wanted.get("backends"), list):
            wanted["backends"] = _sorted_backends(wanted["backends"])
        return wanted

    def body(self, manifest: Manifest, resolved: Mapping[str, str]) -> dict[str, Any]:
        backends = []
        for one in manifest.spec.get("backends") or ():
            if not isinstance(one, Mapping) or "deployment" not in one:
                raise ManifestError(
                    f"{manifest}: spec.backends has {one!r}; each entry needs deployment and weight"
                )
            found = find_object(self.client, DEPLOYMENTS, str(one["deployment"]))
            backends.append({**one, "deployment": found["uid"]})
        return {"backends": backends}


def _sorted_adapters(adapters: Iterable[Any]) -> list[Any]:
    """The adapters by name; entries that are not objects stay as they are."""
    rows = [dict(one) if isinstance(one, Mapping) else one for one in adapters]
    return sorted(rows, key=lambda one: str(one.get("name") if isinstance(one, dict) else one))


def _sorted_backends(backends: Any) -> list[dict[str, Any]]:
    return sorted((dict(one) for one in backends), key=lambda one: str(one.get("deployment")))


class GatewayKeyKind(Kind):
    name = "GatewayKey"
    has_team = True
    not_created = "its text is shown only once. Create it with: ninefold key create"

    def is_current(self, row: Mapping[str, Any]) -> bool:
        return row["revoked_at"] is None

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return picked(
            row, "routes", "requests_per_minute", "tokens_per_minute", "concurrency", "expires_at"
        )
