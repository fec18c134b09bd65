"""Teams with their members, company roles, personal tokens, webhooks, storage limits and rates."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar

from ninefold_client.errors import ManifestError
from ninefold_client.kinds.base import Kind, picked
from ninefold_client.manifests import Manifest
from ninefold_client.resources import EVERY_OTHER_TEAM, find_team, find_user

#: The role of a team that its last holder cannot lose.
ADMINISTRATOR = "administrator"


class TeamKind(Kind):
    """A team by its slug; ``members`` is the complete list of roles that were not granted by single sign-on."""

    name = "Team"
    not_deleted = "a team owns the history of its jobs and models"

    def find(self, manifest: Manifest) -> dict[str, Any] | None:
        found = super().find(manifest)
        if found is not None and found["slug"] != manifest.name:
            return None
        return found

    def details(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {**super().details(row), "members": self.client.get(f"teams/{row['uid']}/members")}

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {"title": row["name"], "members": _local_members(row["members"])}

    def comparable(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        wanted = dict(spec)
        if isinstance(wanted.get("members"), list):
            wanted["members"] = _sorted_members(wanted["members"])
        return wanted

    def body(self, manifest: Manifest, resolved: Mapping[str, str]) -> dict[str, Any]:
        spec = dict(manifest.spec)
        body: dict[str, Any] = {"slug": manifest.name, "name": spec.pop("title", manifest.name)}
        return {**body, **spec}

    def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        members = [
            {"user": find_user(self.client, str(one["user"])), "roles": one["roles"]}
            for one in _sorted_members(body.get("members") or [])
        ]
        return super().create({**body, "members": members})

    def change(
        self, row: Mapping[str, Any], body: Mapping[str, Any], changed: frozenset[str]
    ) -> None:
        if "title" in changed:
            self.client.patch(f"teams/{row['uid']}", {"name": body["name"]})
        if "members" in changed:
            self._set_members(row["uid"], body["members"])

    def _set_members(self, team: str, wanted: list[Mapping[str, Any]]) -> None:
        current = {one["username"]: one for one in self.client.get(f"teams/{team}/members")}
        wanted_roles = {str(one.get("user")): list(one.get("roles") or ()) for one in wanted}
        # Administrators first: a team must not be without one in between.
        by_role = sorted(wanted_roles.items(), key=lambda one: ADMINISTRATOR not in one[1])
        added = any(
            ADMINISTRATOR in roles
            and (name not in current or ADMINISTRATOR not in current[name]["roles"])
            for name, roles in by_role
        )
        if self.client.dry_run and added:
            # The server would refuse to take the role from the last one that it still knows.
            keeping = {name for name, one in current.items() if ADMINISTRATOR in one["roles"]}
            by_role = [one for one in by_role if one[0] not in keeping]
            current = {name: one for name, one in current.items() if name not in keeping}
        for username, roles in by_role:
            member = current.get(username)
            uid = member["uid"] if member else find_user(self.client, username)
            granted = member["roles_by_sign_on"] if member else []
            self.client.put(f"teams/{team}/members/{uid}", {"roles": sorted({*roles, *granted})})
        for username, member in current.items():
            if username in wanted_roles:
                continue
            path, granted = f"teams/{team}/members/{member['uid']}", member["roles_by_sign_on"]
            if not granted:
                self.client.delete(path)
            elif set(granted) != set(member["roles"]):
                self.client.put(path, {"roles": granted})


def _local_members(members: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    local = [
        {
            "user": one["username"],
            "roles": [role for role in one["roles"] if role not in one["roles_by_sign_on"]],
        }
        for one in members
    ]
    return _sorted_members([one for one in local if one["roles"]])


def _sorted_members(members: list[Any]) -> list[dict[str, Any]]:
    for one in members:
        if not isinstance(one, Mapping) or set(one) != {"user", "roles"}:
            raise ManifestError(
                f"spec.members has {one!r}; each entry needs user and roles, for example "
                "{user: alice, roles: [engineer]}"
            )
    entries = [{"user": str(one["user"]), "roles": sorted(one["roles"])} for one in members]
    return sorted(entries, key=lambda one: str(one["user"]))


class CompanyRolesKind(Kind):
    """The roles of a user in the whole company; the document has the username as its name."""

    name = "CompanyRoles"

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        local = [role for role in row["roles"] if role not in row["roles_by_sign_on"]]
        return {"roles": sorted(local)}

    def comparable(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        roles = spec.get("roles")
        return {**spec, "roles": sorted(roles)} if isinstance(roles, list) else dict(spec)

    def body(self, manifest: Manifest, resolved: Mapping[str, str]) -> dict[str, Any]:
        return {**manifest.spec, "username": manifest.name}

    def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        uid = find_user(self.client, body["username"])
        self.client.put(f"{self.path}/{uid}", {"roles": body.get("roles") or []})
        return {"uid": uid}

    def change(
        self, row: Mapping[str, Any], body: Mapping[str, Any], changed: frozenset[str]
    ) -> None:
        roles = sorted({*(body["roles"] or ()), *row["roles_by_sign_on"]})
        self.client.put(f"{self.path}/{row['uid']}", {"roles": roles})

    def delete(self, uid: str) -> None:
        rows = [one for one in self.client.list_all(self.path) if one["uid"] == uid]
        granted = rows[0]["roles_by_sign_on"] if rows else []
        self.client.put(f"{self.path}/{uid}", {"roles": granted})


class PersonalTokenKind(Kind):
    """Metadata of a token of the caller; the text is not part of a document."""

    name = "PersonalToken"
    immutable = frozenset({"scopes", "team", "expires_at"})
    not_created = "its text is shown only once. Create it with: ninefold token create"

    def is_current(self, row: Mapping[str, Any]) -> bool:
        return row["revoked_at"] is None

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "scopes": sorted(row["scopes"]),
            "team": row["team_name"] or None,
            "expires_at": row["expires_at"],
        }

    def comparable(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        scopes = spec.get("scopes")
        return {**spec, "scopes": sorted(scopes)} if isinstance(scopes, list) else dict(spec)


class WebhookKind(Kind):
    """A webhook for events of a team. Its signing secret is shown by a rotation, not by ``apply``."""

    name = "Webhook"
    has_team = True

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {"url": row["url"], "kinds": sorted(row["kinds"]), "active": row["active"]}

    def comparable(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        kinds = spec.get("kinds")
        return {**spec, "kinds": sorted(kinds)} if isinstance(kinds, list) else dict(spec)


class RetentionRulesKind(Kind):
    """Retention of a team's artifacts by the name of the team; ``others`` for teams without own rules."""

    name = "RetentionRules"
    _fields: ClassVar = ("enabled", "keep_versions", "checkpoint_days", "failed_days", "log_days")

    def find(self, manifest: Manifest) -> dict[str, Any] | None:
        uid = _team_uid(self, manifest.name)
        for row in self.resource.rows(self.client):
            if self.uid(row) == uid:
                return row
        return None

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return picked(row["rules"], *self._fields)

    def body(self, manifest: Manifest, resolved: Mapping[str, str]) -> dict[str, Any]:
        return {"team": manifest.name, **manifest.spec}

    def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        uid = _team_uid(self, body["team"])
        self._put(uid, body)
        return {"team": {"uid": uid}}

    def change(
        self, row: Mapping[str, Any], body: Mapping[str, Any], changed: frozenset[str]
    ) -> None:
        self._put(self.uid(row), {**row["rules"], **body})

    def _put(self, uid: str, body: Mapping[str, Any]) -> None:
        self.client.put(
            f"{self.path}/{uid}",
            {"enabled": True, **dict.fromkeys(self._fields[1:]),
             **{name: value for name, value in body.items() if name != "team"}},
        )  # fmt: skip


class StorageQuotaKind(Kind):
    """The limit of a team's artifacts in bytes, by the name of the team."""

    name = "StorageQuota"

    def find(self, manifest: Manifest) -> dict[str, Any] | None:
        uid = _team_uid(self, manifest.name)
        rows = (row for row in self.resource.rows(self.client) if self.uid(row) == uid)
        return next(rows, None)

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {"limit": row["limit"]}

    def change(
        self, row: Mapping[str, Any], body: Mapping[str, Any], changed: frozenset[str]
    ) -> None:
        self.client.put(f"storage/quotas/{self.uid(row)}", {"limit": body["limit"]})

    def delete(self, uid: str) -> None:
        self.client.put(f"storage/quotas/{uid}", {"limit": None})


def _team_uid(kind: Kind, name: str) -> str:
    return name if name == EVERY_OTHER_TEAM else find_team(kind.client, name)


class CardRateKind(Kind):
    """The price of an hour of one card, by the name of the chip."""

    name = "CardRate"

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {"per_hour": _decimal(row["per_hour"])}

    def comparable(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        return {**spec, "per_hour": _decimal(spec["per_hour"])} if "per_hour" in spec else {**spec}

    def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        rate: Mapping[str, Any] = self.client.put(
            f"{self.path}/{body['name']}", {"per_hour": str(body.get("per_hour"))}
        )
        return rate

    def change(
        self, row: Mapping[str, Any], body: Mapping[str, Any], changed: frozenset[str]
    ) -> None:
        self.create(body)


def _decimal(value: object) -> str:
    """Return a price in one form: ``1.50`` and ``1.5000`` are equal."""
    try:
        number = Decimal(str(value)).normalize()
    except InvalidOperation:
        return str(value)
    return f"{number:f}"
