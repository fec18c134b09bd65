"""Queues, clusters, metric sources, alerts, health rules and maintenance rollouts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from ninefold_client.kinds.base import Kind, by_name, name_of, picked, raise_findings
from ninefold_client.manifests import Manifest
from ninefold_client.resources import RESOURCE_OF_KIND, find_object, objects_named


class QueueKind(Kind):
    name = "Queue"
    has_team = True
    validated_together = True
    deletion_blocked_by = frozenset({"Deployment", "Queue"})
    references: ClassVar = {"parent": by_name("Queue")}
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
            "parent": name_of(row["parent"]),
            **picked(row, *self._fields),
            "entitlements": _sorted_entitlements(row["entitlements"]),
        }

    def comparable(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        wanted = dict(spec)
        if isinstance(wanted.get("entitlements"), list):
            wanted["entitlements"] = _sorted_entitlements(wanted["entitlements"])
        return wanted

    def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        created = super().create(body)
        self._raise_previewed(created, name=body["name"])
        return created

    def change(
        self, row: Mapping[str, Any], body: Mapping[str, Any], changed: frozenset[str]
    ) -> None:
        fields = {name: body[name] for name in sorted(changed)}
        self._raise_previewed(
            self.client.patch(f"{self.path}/{self.uid(row)}", fields), name=row["name"]
        )

    def delete(self, uid: str) -> None:
        answer = self.client.delete(f"{self.path}/{uid}")
        self._raise_previewed(answer, name="the deletion")

    def _raise_previewed(self, answer: Mapping[str, Any], *, name: str) -> None:
        """A dry run is answered by a preview of the whole tree, with its errors."""
        if self.client.dry_run:
            raise_findings(name, answer["findings"])


def _sorted_entitlements(entitlements: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    defaults = {"chip": "", "reserved": 0, "guaranteed": 0, "cap": None}
    return sorted(({**defaults, **one} for one in entitlements), key=lambda one: str(one["chip"]))


class PriorityClassKind(Kind):
    name = "PriorityClass"

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return picked(row, "value", "description")


class ClusterKind(Kind):
    name = "Cluster"
    write_only = frozenset({"kubeconfig", "although_unfit"})
    immutable = frozenset({"kind"})
    deletion_blocked_by = frozenset({"Deployment"})
    deletion_interrupts = True

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return picked(row, "kind", "binding", "options")


class MetricSourceKind(Kind):
    name = "MetricSource"
    write_only = frozenset({"token"})
    immutable = frozenset({"kind", "cluster"})
    references: ClassVar = {"cluster": by_name("Cluster")}

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "cluster": name_of(row["cluster"]),
            **picked(row, "kind", "options", "every", "enabled"),
        }


class AlertRuleKind(Kind):
    name = "AlertRule"

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in row["document"].items() if name != "name"}


class AlertReceiverKind(Kind):
    name = "AlertReceiver"
    write_only = frozenset({"url", "secret"})
    immutable = frozenset({"kind", "addresses", "language"})

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return picked(row, "kind", "addresses", "language", "active")


class AlertRouteKind(Kind):
    """Receivers are given by name; the server resolves them."""

    name = "AlertRoute"

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **picked(row, "severity", "matchers", "enabled"),
            "receivers": [one["name"] for one in row["receivers"]],
        }

    def body(self, manifest: Any, resolved: Mapping[str, str]) -> dict[str, Any]:
        body = super().body(manifest, resolved)
        if isinstance(body.get("receivers"), list):
            receivers = RESOURCE_OF_KIND["AlertReceiver"]
            body["receivers"] = [
                find_object(self.client, receivers, str(one))["uid"] for one in body["receivers"]
            ]
        return body

    def change(
        self, row: Mapping[str, Any], body: Mapping[str, Any], changed: frozenset[str]
    ) -> None:
        current = {
            "name": row["name"],
            **picked(row, "severity", "matchers", "enabled"),
            "receivers": [one["uid"] for one in row["receivers"]],
        }
        self.client.put(f"{self.path}/{row['uid']}", {**current, **body})


class SilenceKind(Kind):
    """A silence of alerts.

    One that has expired is a record. A document with an end in the past means the newest record of its name, so
    that it stays ``unchanged``; a document with a later end creates another silence.
    """

    name = "Silence"

    def find(self, manifest: Manifest) -> dict[str, Any] | None:
        found = super().find(manifest)
        if found is not None or not _is_past(manifest.spec.get("ends_at")):
            return found
        records = objects_named(self.client, self.resource, manifest.name)
        return next((self.details(row) for row in records), None)

    def is_current(self, row: Mapping[str, Any]) -> bool:
        return not _is_past(row["ends_at"])

    def has_document(self, row: Mapping[str, Any]) -> bool:
        return True

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {**picked(row, "matchers", "reason"), "ends_at": _instant(row["ends_at"])}

    def comparable(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        return {**spec, "ends_at": _instant(spec["ends_at"])} if "ends_at" in spec else {**spec}

    def body(self, manifest: Manifest, resolved: Mapping[str, str]) -> dict[str, Any]:
        return self.comparable(super().body(manifest, resolved))


def _instant(value: object) -> object:
    """Return a time as text in UTC; anything else as it is.

    YAML reads a time without quotes as such, and one without a zone is in UTC.
    """
    try:
        at = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        return value
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _is_past(value: object) -> bool:
    try:
        return datetime.fromisoformat(str(_instant(value))) <= datetime.now(UTC)
    except ValueError:
        return False


class HealthRuleKind(Kind):
    name = "HealthRule"

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return picked(row, "title", "condition", "level", "enabled")


class HealthPolicyKind(Kind):
    """The only one; its document has the name ``default``."""

    name = "HealthPolicy"
    not_created = "there is one health policy, named default"
    not_deleted = "there is always one health policy"

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return picked(row, "automatic", "settings")

    def change(
        self, row: Mapping[str, Any], body: Mapping[str, Any], changed: frozenset[str]
    ) -> None:
        self.client.patch(self.path, {name: body[name] for name in sorted(changed)})


class MaintenanceRolloutKind(Kind):
    """Created by a document, it starts at once, like a job."""

    name = "MaintenanceRollout"
    immutable = frozenset({"*"})
    not_deleted = "rollouts stay as records"
    references: ClassVar = {"cluster": by_name("Cluster")}

    def live_spec(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "cluster": name_of(row["cluster"]),
            **picked(
                row,
                *("labels", "domain_label", "argv", "image", "run_within", "burn_in", "parallel"),
            ),
        }
