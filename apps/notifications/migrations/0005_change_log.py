from django.db import migrations

from controlplane.outbox.resource_changes import ChangeLogTrigger


class Migration(migrations.Migration):
    dependencies = [
        ("notifications", "0004_reasons_as_data"),
        ("outbox", "0002_resource_changes"),
    ]

    operations = [
        ChangeLogTrigger("notifications_notification", owner="'user:' || ROW.recipient_id"),
        ChangeLogTrigger("notifications_webhook", owner="'team:' || ROW.team_id"),
        ChangeLogTrigger("notifications_webhookdelivery"),
    ]
