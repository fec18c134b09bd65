from django.db import migrations

from controlplane.outbox.resource_changes import ChangeLogTrigger


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0006_row_versions"),
        ("outbox", "0002_resource_changes"),
    ]

    operations = [
        ChangeLogTrigger("fleet_cluster"),
        ChangeLogTrigger(
            "fleet_node",
            columns=(
                "name",
                "cpu",
                "memory",
                "ready",
                "cordoned",
                "isolated_since",
                "tainted",
                "labels",
                "locality",
                "removed_at",
            ),
        ),
        ChangeLogTrigger(
            "fleet_card",
            columns=("index", "chip", "memory", "serial", "state", "parent_id", "removed_at"),
        ),
    ]
