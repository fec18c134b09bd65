from django.db import migrations

from controlplane.persistence.earlier_reasons import AlterToReason


class Migration(migrations.Migration):
    dependencies = [
        ("notifications", "0003_deployment_degraded"),
    ]

    operations = [
        AlterToReason("mail", "error"),
        AlterToReason("webhook", "error"),
        AlterToReason("webhook", "last_error"),
        AlterToReason("webhooktry", "error"),
    ]
