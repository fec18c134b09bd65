from django.db import migrations

from controlplane.persistence.earlier_reasons import AlterToReason


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0001_tables_of_0_1_0"),
    ]

    operations = [
        AlterToReason("attempt", "message"),
        AlterToReason("attempttransition", "reason"),
        AlterToReason("job", "state_reason"),
        AlterToReason("jobtransition", "reason"),
    ]
