from django.db import migrations

from controlplane.outbox.resource_changes import ChangeLogTrigger


class Migration(migrations.Migration):
    dependencies = [
        ("quotas", "0013_release_reasons"),
        ("outbox", "0002_resource_changes"),
    ]

    operations = [
        # Without an owner: managers of a queue read records of other teams, too.
        ChangeLogTrigger("quotas_usagerecord", uid="ROW.id::text"),
    ]
