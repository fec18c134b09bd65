"""Apply documents: create what is missing, change what differs, leave the rest alone."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from ninefold_client.client import Client
from ninefold_client.errors import ApiError, ManifestError, NotFound
from ninefold_client.kinds import KINDS, JobKind, Kind
from ninefold_client.manifests import Difference, Manifest, differences
from ninefold_client.resources import find_job_output, find_team, split_version

__all__ = [
    "KINDS",
    "ApplyAction",
    "JobKind",
    "Plan",
    "apply_manifest",
    "manifest_of_object",
    "manifests_of_objects",
]


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
    #: Uid of the object; empty if it would be created.
    uid: str = ""
    #: In a dry run, what the server refuses as long as other documents have not been applied.
    refused_alone: str = ""


def in_order(manifests: list[Manifest]) -> list[Manifest]:
    """Return the documents by kind, those of one kind in their own order; models that are imported before jobs."""
    order = list(KINDS)

    def position(one: Manifest) -> tuple[int, bool]:
        return order.index("Job" if one.is_import else one.kind), not one.is_import

    return sorted(manifests, key=position)


def apply_manifest(
    client: Client,
    manifest: Manifest,
    *,
    dry_run: bool = False,
    beside: Iterable[Manifest] = (),
    before: Iterable[Plan] = (),
) -> Plan:
    """Make the object what the document says.

    :param dry_run: change nothing; the server validates the change and the permissions.
    :param beside: the other documents that are applied; in a dry run, what they create may be missing.
    :param before: what was applied before; in a dry run, the server does not have those changes.
    :raises ManifestError: if a field cannot be changed, or the server has findings.
    :raises NotFound: if the document refers to an object that is missing.
    :raises ApiError: if the server refuses the change.
    """
    kind = KINDS[manifest.kind](client)
    if manifest.team and not kind.has_team:
        raise ManifestError(
            f"{manifest.source}: a {manifest.kind} has no team; remove metadata.team"
        )
    others = (one for one in beside if one is not manifest)
    created_beside = _created_names(others) if dry_run else frozenset()
    try:
        if manifest.team:
            # Before the references: whoever is not in the team sees none of its models either.
            find_team(client, manifest.team)
        row = kind.find(manifest)
        resolved, spec = _resolve(kind, manifest, missing=created_beside)
        compared = kind.comparable(spec)
    except NotFound as error:
        if error.name not in created_beside:
            raise
        return Plan(
            manifest=manifest,
            action=ApplyAction.CREATED,
            differences=tuple(differences(manifest.spec, {})),
        )
    wanted = {name: value for name, value in compared.items() if name not in kind.write_only}
    found_differences = (
        *differences(wanted, kind.live_spec(row) if row else {}),
        *_differences_of_owner(kind, row, resolved, wanted),
        *kind.more_differences(manifest, row),
    )
    plan = Plan(
        manifest=manifest,
        action=ApplyAction.CREATED if row is None else ApplyAction.UNCHANGED,
        differences=found_differences,
        uid=kind.uid(row) if row else "",
    )
    if row is not None and not found_differences:
        return plan
    if row is None:
        _refuse_creation(kind, manifest, missing=created_beside)
    else:
        _refuse_immutable(kind, manifest, found_differences)
        plan = replace(plan, action=ApplyAction.CONFIGURED)
    if not dry_run and row is None:
        return replace(plan, uid=kind.uid(kind.create(kind.body(manifest, resolved))))
    if not dry_run and row is not None:
        _change(kind, plan, row, kind.body(manifest, resolved))
        return plan
    given = {name for name in kind.references if manifest.spec.get(name) is not None}
    if given - resolved.keys() or (row is None and kind.reason_not_created(manifest)):
        # It refers to what another document creates, or is created with it.
        return plan
    refused = _refused_alone(kind, plan, row, resolved, missing=created_beside, before=before)
    return replace(plan, refused_alone=refused)


def _change(kind: Kind, plan: Plan, row: Mapping[str, Any], body: Mapping[str, Any]) -> None:
    changed = frozenset(one.field.partition(".")[0] for one in plan.differences)
    kind.change(row, body, changed)


def _refused_alone(
    kind: Kind,
    plan: Plan,
    row: Mapping[str, Any] | None,
    resolved: Mapping[str, str],
    *,
    missing: frozenset[str],
    before: Iterable[Plan],
) -> str:
    """Let the server validate the change; return what it refuses only because other documents were not applied.

    :raises NinefoldError: if it refuses the change for another reason.
    """
    done = [one for one in before if one.action is not ApplyAction.UNCHANGED]
    try:
        body = kind.body(plan.manifest, resolved)
        kind.client = kind.client.as_dry_run()
        if row is None:
            kind.create(body)
        else:
            _change(kind, plan, row, body)
    except NotFound as error:
        if error.name not in missing:
            raise
    except ApiError as error:
        created = {one.manifest.name for one in done if one.action is ApplyAction.CREATED}
        if not _concerns_only(error, plan.manifest.spec, created):
            raise
    except ManifestError as error:
        together = kind.validated_together and any(one.manifest.kind == kind.name for one in done)
        if not together:
            raise
        return str(error)
    return ""


def _concerns_only(error: ApiError, spec: Mapping[str, Any], names: Container[str]) -> bool:
    """Return whether all errors are of fields that refer to one of the names."""
    values = [spec.get(one.field) for one in error.errors]
    return bool(values) and all(
        isinstance(value, str) and split_version(value.rpartition("/")[2])[0] in names
        for value in values
    )


def _differences_of_owner(
    kind: Kind,
    row: Mapping[str, Any] | None,
    resolved: Mapping[str, str],
    wanted: Mapping[str, Any],
) -> Iterable[Difference]:
    """References to objects of the same name in another team, by uid."""
    if row is None:
        return
    for name, uid in resolved.items():
        live = kind.live_reference(row, name)
        if live and live["name"] == wanted.get(name) and live["uid"] != uid:
            yield Difference(field=name, before=live["uid"], after=uid)


def _created_names(manifests: Iterable[Manifest]) -> frozenset[str]:
    """Return the names of the objects that the documents create, models of jobs among them."""
    found = set()
    for one in manifests:
        found.add(one.name)
        if output := one.spec.get("output_name"):
            found.add(str(output))
    return frozenset(found)


def _resolve(
    kind: Kind, manifest: Manifest, *, missing: frozenset[str]
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the uids of references by field, and the spec with their names.

    :param missing: names of objects that may be missing; references to them stay as they are.
    """
    resolved, spec = {}, dict(manifest.spec)
    for name, find in kind.references.items():
        given = spec.get(name)
        if given is None:
            continue
        found: Mapping[str, Any]
        try:
            if isinstance(given, Mapping):
                found = find_job_output(kind.client, given, field=f"{manifest}: spec.{name}")
            else:
                found = find(kind.client, str(given), team=manifest.team)
        except NotFound as error:
            if error.name not in missing:
                raise
        else:
            resolved[name], spec[name] = str(found["uid"]), found["name"]
    return resolved, spec


def _refuse_creation(kind: Kind, manifest: Manifest, *, missing: frozenset[str]) -> None:
    reason = kind.reason_not_created(manifest)
    if reason and manifest.name not in missing:
        raise NotFound(
            f"there is no {kind.resource.singular} {manifest.name!r}; {reason}",
            name=manifest.name,
        )


def _refuse_immutable(kind: Kind, manifest: Manifest, found: tuple[Difference, ...]) -> None:
    for one in found:
        if "*" in kind.immutable or one.field.partition(".")[0] in kind.immutable:
            raise ManifestError(
                f"{manifest}: {one.field} is {one.before!r} and cannot be changed to {one.after!r}; "
                f"give the {kind.name.lower()} another name"
            )


def source_documents(manifest: Manifest, manifests: Iterable[Manifest]) -> list[Manifest]:
    """Return the imports, and of a document that is no job the jobs, whose model it uses."""
    given = manifest.spec.get("model_version")
    if given is None:
        return []
    jobs = [one for one in manifests if one.kind == "Job" and manifest.kind != "Job"]
    if isinstance(given, Mapping):
        return [one for one in jobs if one.name == given.get("job")]
    model, _ = split_version(str(given).rpartition("/")[2])
    imports = [one for one in manifests if one.is_import and one.name == model]
    return [*imports, *(one for one in jobs if one.spec.get("output_name") == model)]


def manifest_of_object(client: Client, kind: str, row: Mapping[str, Any]) -> Manifest:
    """Return the document that ``apply`` reads for an existing object."""
    found = KINDS[kind](client)
    return found.manifest_of(found.details(row))


def manifests_of_objects(
    client: Client, kind: str, rows: Iterable[Mapping[str, Any]]
) -> list[Manifest]:
    """Return the documents of the objects that a document of their name means.

    Records of revoked objects are left out, and of several objects with one name all but the newest.

    :param rows: newest first.
    """
    found = KINDS[kind](client)
    meant: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in rows:
        team = row["team"]["uid"] if found.has_team and row.get("team") else ""
        if found.has_document(row):
            meant.setdefault((found.resource.name_of(row), team), row)
    return [manifest_of_object(client, kind, row) for row in meant.values()]
