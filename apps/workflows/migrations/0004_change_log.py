from django.db import migrations

from controlplane.outbox.resource_changes import ChangeLogTrigger


class Migration(migrations.Migration):
    dependencies = [
        ("workflows", "0003_reasons_as_data"),
        ("outbox", "0002_resource_changes"),
    ]

    operations = [
        ChangeLogTrigger("workflows_pipeline", owner="'team:' || ROW.team_id"),
    ]
