from django.db import migrations

from controlplane.persistence.earlier_reasons import AlterToReason


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0004_isolation_and_errors"),
    ]

    operations = [
        AlterToReason("card", "state_reason"),
        AlterToReason("cluster", "error"),
        AlterToReason("cluster", "isolation"),
    ]
