from django.db import migrations

from controlplane.outbox.resource_changes import ChangeLogTrigger


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0010_change_log"),
        ("outbox", "0002_resource_changes"),
    ]

    operations = [
        ChangeLogTrigger(
            "registry_retentionrule",
            # Null for a team that is being deleted.
            uid="CASE WHEN ROW.team_id IS NULL THEN 'others' ELSE"
            " (SELECT team.uid FROM accounts_team AS team WHERE team.id = ROW.team_id) END",
            owner="'team:' || ROW.team_id",
        ),
    ]
