from django.db import migrations

from controlplane.persistence.earlier_reasons import AlterToReason
from controlplane.persistence.reasons import ReasonField


class Migration(migrations.Migration):
    dependencies = [
        ("notifications", "0003_deployment_degraded"),
    ]

    operations = [
        AlterToReason(
            model_name="mail",
            name="error",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="webhook",
            name="error",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="webhook",
            name="last_error",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="webhooktry",
            name="error",
            field=ReasonField(blank=True, default=str),
        ),
    ]
