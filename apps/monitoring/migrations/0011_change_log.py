from django.db import migrations

from controlplane.outbox.resource_changes import ChangeLogTrigger


class Migration(migrations.Migration):
    dependencies = [
        ("monitoring", "0010_reasons_as_data"),
        ("outbox", "0002_resource_changes"),
    ]

    operations = [
        ChangeLogTrigger("monitoring_rollout"),
        ChangeLogTrigger("monitoring_alertgroup"),
        ChangeLogTrigger("monitoring_alertsilence"),
        ChangeLogTrigger("monitoring_alertreceiver"),
        ChangeLogTrigger("monitoring_alertroute"),
        ChangeLogTrigger("monitoring_isolation"),
        ChangeLogTrigger("monitoring_healthrule"),
        ChangeLogTrigger(
            "monitoring_alertrule",
            columns=("name", "title", "severity", "enabled", "document", "changed_at", "error"),
        ),
        ChangeLogTrigger(
            "monitoring_fault",
            columns=("level", "message", "count", "ended_at", "acknowledged_at", "note"),
        ),
    ]
