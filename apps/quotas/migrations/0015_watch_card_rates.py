from django.db import migrations

from controlplane.outbox.resource_changes import ChangeLogTrigger


class Migration(migrations.Migration):
    dependencies = [
        ("quotas", "0014_watch_usage_records"),
        ("outbox", "0003_longer_uid"),
    ]

    operations = [
        ChangeLogTrigger("quotas_cardrate", uid="ROW.chip"),
    ]
