from django.db import migrations

from controlplane.outbox.resource_changes import ChangeLogTrigger


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0008_device_authorization"),
        ("outbox", "0002_resource_changes"),
    ]

    operations = [
        ChangeLogTrigger("accounts_team", owner="'team:' || ROW.id"),
        ChangeLogTrigger("accounts_personaltoken", owner="'user:' || ROW.user_id"),
        ChangeLogTrigger("accounts_user"),
        ChangeLogTrigger("accounts_applyset", owner="'team:' || ROW.team_id"),
    ]
