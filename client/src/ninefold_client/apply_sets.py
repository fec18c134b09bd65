"""Apply sets: the server's record of the objects that a set of documents created or changed, for ``--prune``."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ninefold_client.apply import Plan
from ninefold_client.client import Client
from ninefold_client.errors import ApiError, ManifestError, NotFound
from ninefold_client.kinds import KINDS, Kind
from ninefold_client.resources import find_team

_PATH = "apply-sets"
#: Of a deletion that other objects prevent.
_REFUSED_BY_STATE = frozenset({409, 422})


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMember:
    """An object of a set."""

    kind: str
    uid: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


class ApplySet:
    """The record of one set. A concurrent apply of the same set is refused by its version."""

    def __init__(self, client: Client, *, name: str, team: str, row: Mapping[str, Any] | None):
        self._client, self._name, self._team, self._row = client, name, team, row

    @property
    def members(self) -> list[SetMember]:
        """Objects that were recorded."""
        rows = self._row["objects"] if self._row else []
        return [SetMember(kind=one["kind"], uid=one["uid"], name=one["name"]) for one in rows]

    def record(self, members: Iterable[SetMember]) -> None:
        """Store the objects of the set.

        :raises ApiError: if an object belongs to another set, or the set was changed meanwhile.
        """
        wanted = {(one.kind, one.uid): one for one in members}
        if self._row is None:
            body = {"name": self._name, **({"team": self._team} if self._team else {})}
            self._row = self._client.post(_PATH, body)
        known = {(one["kind"], one["uid"], one["name"]) for one in self._row["objects"]}
        if {(one.kind, one.uid, one.name) for one in wanted.values()} == known:
            return
        objects = [{"kind": one.kind, "uid": one.uid, "name": one.name} for one in wanted.values()]
        self._row = self._client.patch(
            f"{_PATH}/{self._row['uid']}", {"version": self._row["version"], "objects": objects}
        )


def open_set(client: Client, *, name: str, team: str | None) -> ApplySet:
    """Return the set of that name; it is created when something is recorded.

    :param team: the owning team; None: the company for operators, else the only team of the user.
    :raises NotFound: if the team is missing, or is needed because the user has several.
    """
    uid = find_team(client, team) if team else _default_team(client)
    for row in client.list_all(_PATH, name=name):
        if (row["team"]["uid"] if row["team"] else "") == uid:
            return ApplySet(client, name=name, team=uid, row=row)
    return ApplySet(client, name=name, team=uid, row=None)


def _default_team(client: Client) -> str:
    user = client.get("me")
    if user["administrator"] or user["company_roles"]:
        return ""
    teams = user["teams"]
    if len(teams) != 1:
        slugs = ", ".join(one["slug"] for one in teams) or "none"
        raise NotFound(f"the set needs a team; give it with --team. Your teams: {slugs}")
    return str(teams[0]["uid"])


def members_of(plans: Iterable[Plan]) -> list[SetMember]:
    """Return the objects of applied documents."""
    return [
        SetMember(kind=one.manifest.kind, uid=one.uid, name=one.manifest.name)
        for one in plans
        if one.uid
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedObject:
    """An object of a set that no document describes any more."""

    member: SetMember
    kind: Kind
    #: Why it is not deleted; empty if it is.
    kept: str
    #: State of something that the deletion interrupts; empty if it interrupts nothing.
    interrupted: str


def objects_to_prune(
    client: Client, *, recorded: Iterable[SetMember], applied: Iterable[SetMember]
) -> list[PrunedObject]:
    """Return the recorded objects that no document has and that still exist, in the order of their deletion.

    It is the reverse of the order in which they were applied: children and what refers to others come first.
    """
    current = {(one.kind, one.uid) for one in applied}
    found = []
    for member in reversed(list(recorded)):
        if (member.kind, member.uid) in current:
            continue
        if member.kind not in KINDS:
            raise NotFound(
                f"{member} is of a kind that this client does not know; install a newer client"
            )
        kind = KINDS[member.kind](client)
        row = _row_of(kind, member)
        if row is None:
            continue
        state = str(row.get("state") or "in use") if kind.deletion_interrupts else ""
        found.append(
            PrunedObject(
                member=member,
                kind=kind,
                kept=kind.not_deleted,
                interrupted="" if state == "stopped" else state,
            )
        )
    order = list(KINDS)
    return sorted(found, key=lambda one: -order.index(one.member.kind))


def validate_deletion(one: PrunedObject, *, changed: Container[str] = ()) -> str:
    """Let the server validate the deletion of an object, and change nothing.

    :param changed: kinds of the objects that are changed or deleted before it, which the server still has.
    :returns: why it is refused, if the changes before it may remove the reason.
    :raises NinefoldError: if it is refused for another reason.
    """
    after_changes = any(name in changed for name in one.kind.deletion_blocked_by)
    kind = type(one.kind)(one.kind.client.as_dry_run())
    try:
        kind.delete(one.member.uid)
    except ApiError as error:
        if not after_changes or error.status not in _REFUSED_BY_STATE:
            raise
        return str(error)
    except ManifestError as error:
        if not after_changes:
            raise
        return str(error)
    return ""


def _row_of(kind: Kind, member: SetMember) -> Mapping[str, Any] | None:
    if kind.resource.is_complete:
        rows = kind.resource.rows(kind.client)
        return next((row for row in rows if kind.uid(row) == member.uid), None)
    try:
        row: Mapping[str, Any] = kind.client.get(f"{kind.path}/{member.uid}")
    except ApiError as error:
        if error.status == 404:
            return None
        raise
    return row if kind.is_current(row) else None
