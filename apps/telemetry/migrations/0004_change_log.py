from django.db import migrations

from controlplane.outbox.resource_changes import ChangeLogTrigger


class Migration(migrations.Migration):
    dependencies = [
        ("telemetry", "0003_reasons_as_data"),
        ("outbox", "0002_resource_changes"),
    ]

    operations = [
        ChangeLogTrigger(
            "telemetry_source",
            columns=("name", "options", "every", "enabled", "error", "unreachable", "stalled"),
        ),
        ChangeLogTrigger("telemetry_nodetoken", columns=("revoked_at",)),
    ]
