"""The kind ``deployment.troubled`` of stored notifications is migrated to ``deployment.degraded``, and back."""

from __future__ import annotations

from importlib import import_module

from django.db import connection
from django.db.migrations import RunSQL
from django.db.migrations.state import ProjectState
from django.utils import timezone

from apps.notifications.models import Event, Notification, NotificationPreference, Webhook
from controlplane.domain.alerts.notifications import NotificationKind
from tests.integration.monitoring.conftest import Office
from tests.integration.monitoring.notifications import notify

_EARLIER = "deployment.troubled"


def _run_statements(*, backwards: bool = False) -> None:
    migration = import_module("apps.notifications.migrations.0003_deployment_degraded").Migration
    state = ProjectState()
    with connection.schema_editor(atomic=False) as editor:
        for operation in migration.operations:
            if isinstance(operation, RunSQL) and backwards:
                operation.database_backwards("notifications", editor, state, state)
            elif isinstance(operation, RunSQL):
                operation.database_forwards("notifications", editor, state, state)


def _kinds() -> list[set[str]]:
    return [
        set(model.objects.values_list("kind", flat=True))
        for model in (Event, Notification, NotificationPreference)
    ]


def test_kinds_are_migrated_there_and_back(office: Office) -> None:
    kind = NotificationKind.DEPLOYMENT_DEGRADED
    notify(kind, team=office.team, creator=office.ada, at=timezone.now())
    NotificationPreference.objects.create(user=office.ada, kind=kind)
    webhook = Webhook.objects.create(
        team=office.team, name="chat", url="http://chat.example", kinds=["job.failed", kind]
    )
    _run_statements(backwards=True)
    webhook.refresh_from_db()
    assert _kinds() == [{_EARLIER}] * 3
    assert webhook.kinds == ["job.failed", _EARLIER]
    _run_statements()
    webhook.refresh_from_db()
    assert _kinds() == [{kind}] * 3
    assert webhook.kinds == ["job.failed", kind]
