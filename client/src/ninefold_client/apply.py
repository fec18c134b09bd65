"""Apply documents: create what is missing, change what differs, leave the rest alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar

from ninefold_client.client import Client
from ninefold_client.errors import ManifestError
from ninefold_client.manifests import Difference, Manifest, differences
from ninefold_client.resources import (
    RESOURCE_OF_KIND,
    find_dataset_version,
    find_model_version,
    find_object,
    find_team,
    objects_named,
)


class ApplyAction(StrEnum):
    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What applying one document does."""

    manifest: Manifest
    action: ApplyAction
    differences: tuple[Difference, ...]
    #: Uid of the existing object; empty if it is created.
    uid: str = ""


class Kind:
    """How objects of one kind are read, created and changed by REST."""

    name: ClassVar[str]
    #: Spec fields that the server accepts when it creates the object but never returns.
    write_only: ClassVar[frozenset[str]] = frozenset()
    #: Fields that cannot be changed after creation.
    immutable: ClassVar[frozenset[str]] = frozenset()
    has_team: ClassVar[bool] = False
    #: Spec field → function that finds the object named there, and returns it with ``uid`` and ``name``.
    references: ClassVar[Mapping[str, Callable[[Client, str], Mapping[str, Any]]]] = {}

    def __init__(self, client: Client) -> None:
        self.client = client
        self.path = RESOURCE_OF_KIND[self.name].path

    def find(self, manifest: Manifest) -> dict[str, Any] | None:
        """Return the details of the object of the document; None if there is none."""
        resource = RESOURCE_OF_KIND[self.name]
        team = find_team(self.client, manifest.team) if self.has_team and manifest.team else ""
        for row in objects_named(self.client, resource, manifest.name):
            if not team or (row["team"] and row["team"]["uid"] == team):
                detailed: dict[str, Any] = self.client.get(f"{self.path}/{row['uid']}")
                return detailed
        return None

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the spec of an existing object as a document has it, references by name."""
        raise NotImplementedError

    def comparable(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return the wanted spec in the form of :meth:`live_spec`."""
        return dict(spec)

    def body(self, manifest: Manifest, resolved: Mapping[str, str]) -> dict[str, Any]:
        """Return the body of a request that creates the object; ``resolved`` has uids of references by field."""
        body = {"name": manifest.name, **manifest.spec, **resolved}
        if self.has_team and manifest.team:
            body["team"] = find_team(self.client, manifest.team)
        return body

    def create(self, body: Mapping[str, Any]) -> None:
        self.client.post(self.path, body)

    def check(self, body: Mapping[str, Any]) -> None:
        """Let the server validate a creation without doing it, where it can.

        :raises ManifestError: with all of its findings.
        """

    def change(
        self, row: Mapping[str, Any], body: Mapping[str, Any], changed: frozenset[str]
    ) -> None:
        self.client.patch(f"{self.path}/{row['uid']}", {name: body[name] for name in changed})

    def manifest_of(self, row: Mapping[str, Any]) -> Manifest:
        """Return the document that describes an existing object."""
        team = row["team"]["name"] if self.has_team and row.get("team") else ""
        return Manifest(
            kind=self.name, name=row["name"], team=team, spec=_without_empty(self.live_spec(row))
        )


def _without_empty(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in spec.items()
        if value is not None and value not in ("", [], {})
    }


def _picked(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: row.get(name) for name in names}


def _name(reference: Mapping[str, Any] | None) -> str | None:
    return None if reference is None else str(reference["name"])


class JobKind(Kind):
    name = "Job"
    has_team = True
    write_only = frozenset(
        {"secret_variables", "priority_class", "output_shared", "cards", "memory"}
    )
    immutable = frozenset({"*"})
    references: ClassVar = {
        "model_version": find_model_version,
        "dataset_version": find_dataset_version,
    }

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **_picked(
                row,
                "kind",
                "engine",
                "spec",
                "code",
                "output_name",
                "queue",
                "priority",
                "run_seconds",
            ),
            "model_version": _name(row["model_version"]),
            "dataset_version": _name(row["dataset_version"]),
            "chips": row["asked_chips"] or row["chips"],
            "retry_policy": row["retry_policy"],
        }

    def check(self, body: Mapping[str, Any]) -> None:
        checked = self.client.post(f"{self.path}/check", body)
        _raise_findings(body["name"], checked["findings"])


class DeploymentKind(Kind):
    name = "Deployment"
    has_team = True
    immutable = frozenset({"queue"})
    references: ClassVar = {"model_version": find_model_version}
    _revision: ClassVar = ("model_version", "engine", "spec", "chips", "cards")

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        newest = row["revisions"][0] if row["revisions"] else {"model_version": None}
        return {
            "model_version": _name(newest["model_version"]),
            **_picked(newest, "engine", "spec", "chips", "cards"),
            "queue": row["queue"],
            "replicas": row["replica_count"],
        }

    def change(
        self, row: Mapping[str, Any], body: Mapping[str, Any], changed: frozenset[str]
    ) -> None:
        if changed & set(self._revision):
            revision = {name: body[name] for name in self._revision if name in body}
            self.client.post(f"{self.path}/{row['uid']}/revise", revision)
        if "replicas" in changed:
            self.client.post(f"{self.path}/{row['uid']}/scale", {"replicas": body["replicas"]})


class QueueKind(Kind):
    name = "Queue"
    has_team = True
    references: ClassVar = {
        "parent": lambda client, name: find_object(client, RESOURCE_OF_KIND["Queue"], name)
    }
    _fields = (
        "state",
        "description",
        "weight",
        "borrows",
        "lends",
        "reclaims",
        "preempts",
        "max_running_per_user",
    )

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "parent": _name(row["parent"]),
            **_picked(row, *self._fields),
            "entitlements": _sorted_entitlements(row["entitlements"]),
        }

    def comparable(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        wanted = dict(spec)
        if isinstance(wanted.get("entitlements"), list):
            wanted["entitlements"] = _sorted_entitlements(wanted["entitlements"])
        return wanted

    def check(self, body: Mapping[str, Any]) -> None:
        preview = self.client.post(self.path, body, dry_run=True)
        _raise_findings(body["name"], preview["findings"])


def _sorted_entitlements(entitlements: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    defaults = {"chip": "", "reserved": 0, "guaranteed": 0, "cap": None}
    return sorted(({**defaults, **one} for one in entitlements), key=lambda one: str(one["chip"]))


class AlertRuleKind(Kind):
    name = "AlertRule"

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in row["document"].items() if name != "name"}


class HealthRuleKind(Kind):
    name = "HealthRule"

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return _picked(row, "title", "condition", "level", "enabled")


class PriorityClassKind(Kind):
    name = "PriorityClass"

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return _picked(row, "value", "description")


#: In the order in which documents are applied: what others refer to comes first.
KINDS: Mapping[str, type[Kind]] = {
    one.name: one
    for one in (
        PriorityClassKind,
        QueueKind,
        AlertRuleKind,
        HealthRuleKind,
        DeploymentKind,
        JobKind,
    )
}


def in_order(manifests: list[Manifest]) -> list[Manifest]:
    """Return the documents by kind, those of one kind in their own order."""
    return sorted(manifests, key=lambda one: list(KINDS).index(one.kind))


def apply_manifest(client: Client, manifest: Manifest, *, dry_run: bool = False) -> Plan:
    """Make the object what the document says.

    :param dry_run: change nothing; the server validates new jobs and queues.
    :raises ManifestError: if a field cannot be changed, or the server has findings.
    :raises ApiError: if the server refuses the change.
    """
    kind = KINDS[manifest.kind](client)
    if manifest.team and not kind.has_team:
        raise ManifestError(
            f"{manifest.source}: a {manifest.kind} has no team; remove metadata.team"
        )
    if manifest.team:
        # Before the references: whoever is not in the team sees none of its models either.
        find_team(client, manifest.team)
    resolved, spec = {}, dict(manifest.spec)
    for name, find in kind.references.items():
        if spec.get(name) is not None:
            found = find(client, str(spec[name]))
            resolved[name], spec[name] = str(found["uid"]), found["name"]
    row = kind.find(manifest)
    wanted = {
        name: value for name, value in kind.comparable(spec).items() if name not in kind.write_only
    }
    found_differences = tuple(differences(wanted, kind.live_spec(row) if row else {}))
    if row is None:
        body = kind.body(manifest, resolved)
        if dry_run:
            kind.check(body)
        else:
            kind.create(body)
        return Plan(manifest=manifest, action=ApplyAction.CREATED, differences=found_differences)
    plan = Plan(
        manifest=manifest,
        action=ApplyAction.UNCHANGED,
        differences=found_differences,
        uid=row["uid"],
    )
    if not found_differences:
        return plan
    _refuse_immutable(kind, manifest, found_differences)
    if not dry_run:
        changed = frozenset(one.field.partition(".")[0] for one in found_differences)
        kind.change(row, kind.body(manifest, resolved), changed)
    return replace(plan, action=ApplyAction.CONFIGURED)


def _refuse_immutable(kind: Kind, manifest: Manifest, found: tuple[Difference, ...]) -> None:
    for one in found:
        if "*" in kind.immutable or one.field.partition(".")[0] in kind.immutable:
            raise ManifestError(
                f"{manifest}: {one.field} is {one.before!r} and cannot be changed to {one.after!r}; "
                f"give the {kind.name.lower()} another name"
            )


def _raise_findings(name: str, findings: list[Mapping[str, Any]]) -> None:
    if findings:
        lines = "; ".join(f"{one['field']}: {one['message']}" for one in findings)
        raise ManifestError(f"{name} would be refused: {lines}")


def manifest_of_object(client: Client, kind: str, row: Mapping[str, Any]) -> Manifest:
    """Return the document that ``apply`` reads for an existing object; ``row`` is its detailed form."""
    return KINDS[kind](client).manifest_of(row)
