from django.db import migrations

from controlplane.outbox.resource_changes import ChangeLogTrigger


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0008_attempt_upload"),
        ("outbox", "0002_resource_changes"),
    ]

    operations = [
        ChangeLogTrigger("jobs_job", owner="'team:' || ROW.team_id"),
    ]
