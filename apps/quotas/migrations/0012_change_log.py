from django.db import migrations

from controlplane.outbox.resource_changes import ChangeLogTrigger


class Migration(migrations.Migration):
    dependencies = [
        ("quotas", "0011_row_versions"),
        ("outbox", "0002_resource_changes"),
    ]

    operations = [
        ChangeLogTrigger("quotas_queue", owner="'team:' || ROW.team_id"),
        # The quota of a queue is part of it.
        ChangeLogTrigger(
            "quotas_entitlement",
            source="quotas_queue",
            uid="(SELECT queue.uid FROM quotas_queue AS queue WHERE queue.id = ROW.queue_id)",
            owner="(SELECT 'team:' || queue.team_id FROM quotas_queue AS queue WHERE queue.id = ROW.queue_id)",
        ),
        ChangeLogTrigger(
            "quotas_claim",
            owner="'team:' || ROW.team_id",
            columns=("state", "queue_id", "priority", "admitted_at", "revoke_by", "released_at"),
        ),
        ChangeLogTrigger("quotas_queuechange"),
        ChangeLogTrigger("quotas_priorityclass"),
        ChangeLogTrigger("quotas_whatif"),
        ChangeLogTrigger("quotas_rearrangement"),
    ]
