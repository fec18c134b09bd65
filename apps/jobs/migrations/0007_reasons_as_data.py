from django.db import migrations

from controlplane.persistence.earlier_reasons import AlterToReason


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0002_filters_quantization_variables_and_retries"),
    ]

    operations = [
        AlterToReason("attempt", "message"),
        AlterToReason("attempttransition", "reason"),
        AlterToReason("job", "state_reason"),
        AlterToReason("jobtransition", "reason"),
    ]
