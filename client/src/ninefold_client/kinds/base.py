"""What the kinds of documents have in common."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

from ninefold_client.client import Client
from ninefold_client.errors import ManifestError
from ninefold_client.manifests import Difference, Manifest
from ninefold_client.resources import (
    RESOURCE_OF_KIND,
    Resource,
    detailed,
    find_object,
    find_team,
    objects_named,
)

#: A value of a document that is read from the environment, so that the file contains no secret.
FROM_ENVIRONMENT = "from_env"


class FindReference(Protocol):
    """Finds the object that a field names; ``team`` is that of the document."""

    def __call__(self, client: Client, name: str, /, *, team: str = "") -> Mapping[str, Any]: ...


def by_name(kind: str) -> FindReference:
    """References to the objects of a kind whose names are unique in the company."""

    def find(client: Client, name: str, /, **_team: str) -> Mapping[str, Any]:
        return find_object(client, RESOURCE_OF_KIND[kind], name)

    return find


class Kind:
    """How objects of one kind are read, created, changed and deleted by REST."""

    name: ClassVar[str]
    #: Spec fields that the server accepts but never returns. They are not compared.
    write_only: ClassVar[frozenset[str]] = frozenset()
    #: Fields that cannot be changed after creation; ``*`` for all.
    immutable: ClassVar[frozenset[str]] = frozenset()
    #: Whether the server validates all objects of the kind together, so that a dry run of one may be refused only
    #: because those before it were not changed either.
    validated_together: ClassVar[bool] = False
    has_team: ClassVar[bool] = False
    #: Spec field → function that finds the object named there, and returns it with ``uid`` and ``name``.
    references: ClassVar[Mapping[str, FindReference]] = {}
    #: Why there is no creation by a document; empty if there is.
    not_created: ClassVar[str] = ""
    #: Why objects are not deleted; empty if they are.
    not_deleted: ClassVar[str] = ""
    #: Kinds of objects that may prevent a deletion until they are changed or deleted.
    deletion_blocked_by: ClassVar[frozenset[str]] = frozenset()
    #: Whether a deletion interrupts something that runs, so that it needs a confirmation.
    deletion_interrupts: ClassVar[bool] = False

    def __init__(self, client: Client) -> None:
        self.client = client
        self.resource: Resource = RESOURCE_OF_KIND[self.name]
        self.path = self.resource.path

    def find(self, manifest: Manifest) -> dict[str, Any] | None:
        """Return the details of the object of the document; None if there is none."""
        team = find_team(self.client, manifest.team) if self.has_team and manifest.team else ""
        for row in objects_named(self.client, self.resource, manifest.name):
            of_team = not team or (row["team"] and row["team"]["uid"] == team)
            if of_team and self.is_current(row):
                return self.details(row)
        return None

    def is_current(self, row: Mapping[str, Any]) -> bool:
        """Return whether the object still exists for a user, and is not a record of one that was revoked."""
        return True

    def has_document(self, row: Mapping[str, Any]) -> bool:
        """Return whether a document of the object can be applied; false for most records."""
        return self.is_current(row)

    def reason_not_created(self, manifest: Manifest) -> str:
        """Return why the document creates no object; empty if it does."""
        return self.not_created

    def details(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the row with everything that :meth:`live_spec` needs."""
        return detailed(self.client, self.resource, row)

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the spec of an existing object as a document has it, references by name."""
        raise NotImplementedError

    def live_reference(self, row: Mapping[str, Any], field: str) -> Mapping[str, Any] | None:
        """Return uid and name of the object that a field of an existing object refers to."""
        found: Mapping[str, Any] | None = row.get(field)
        return found if isinstance(found, Mapping) else None

    def more_differences(
        self, manifest: Manifest, row: Mapping[str, Any] | None
    ) -> Iterable[Difference]:
        """Return differences of fields beside :meth:`live_spec`; ``row`` is None for a new object."""
        return ()

    def comparable(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return the wanted spec in the form of :meth:`live_spec`."""
        return dict(spec)

    def body(self, manifest: Manifest, resolved: Mapping[str, str]) -> dict[str, Any]:
        """Return the body of a request that creates the object; ``resolved`` has uids of references by field."""
        body = {"name": manifest.name, **manifest.spec, **resolved}
        for name in self.write_only & body.keys():
            body[name] = from_environment(body[name], field=f"{manifest.source}: spec.{name}")
        if self.has_team and manifest.team:
            body["team"] = find_team(self.client, manifest.team)
        return body

    def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send the request that creates the object, and return it."""
        created: Mapping[str, Any] = self.client.post(self.path, body)
        return created

    def change(
        self, row: Mapping[str, Any], body: Mapping[str, Any], changed: frozenset[str]
    ) -> None:
        """Change those fields of the object."""
        self.client.patch(
            f"{self.path}/{self.uid(row)}", {name: body[name] for name in sorted(changed)}
        )

    def delete(self, uid: str) -> None:
        """Delete the object."""
        self.client.delete(f"{self.path}/{uid}")

    def uid(self, row: Mapping[str, Any]) -> str:
        """Return what identifies the object in its REST path."""
        return self.resource.uid_of(row)

    def manifest_of(self, row: Mapping[str, Any]) -> Manifest:
        """Return the document that describes an existing object."""
        team = row["team"]["name"] if self.has_team and row.get("team") else ""
        name = self.resource.name_of(row)
        return Manifest(
            kind=self.name, name=name, team=team, spec=without_empty(self.live_spec(row))
        )


def from_environment(value: Any, *, field: str, environ: Mapping[str, str] = os.environ) -> Any:
    """Return the value with each ``{from_env: NAME}`` in it replaced by the variable.

    :raises ManifestError: if a variable is not set.
    """
    if isinstance(value, Mapping):
        if set(value) == {FROM_ENVIRONMENT}:
            name = str(value[FROM_ENVIRONMENT])
            if name not in environ:
                raise ManifestError(
                    f"{field} needs the environment variable {name}, which is not set"
                )
            return environ[name]
        return {
            key: from_environment(one, field=f"{field}.{key}", environ=environ)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [from_environment(one, field=field, environ=environ) for one in value]
    return value


def without_empty(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with a value."""
    return {
        name: value
        for name, value in spec.items()
        if value is not None and value not in ("", [], {})
    }


def picked(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return those fields of a row."""
    return {name: row.get(name) for name in names}


def name_of(reference: Mapping[str, Any] | None) -> str | None:
    """Return the name of an object that a row refers to."""
    return None if reference is None else str(reference["name"])


def raise_findings(name: str, findings: list[Mapping[str, Any]]) -> None:
    """:raises ManifestError: with the findings of a validation, if there are any."""
    if findings:
        lines = "; ".join(f"{one['field']}: {one['message']}" for one in findings)
        raise ManifestError(f"{name} would be refused: {lines}")


def folder_of(manifest: Manifest) -> Path:
    """Return the folder that relative paths of a document start from."""
    return manifest.folder or Path()
