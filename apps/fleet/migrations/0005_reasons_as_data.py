from django.db import migrations

from controlplane.persistence.earlier_reasons import AlterToReason
from controlplane.persistence.reasons import ReasonField


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0004_isolation_and_errors"),
    ]

    operations = [
        AlterToReason(
            model_name="card",
            name="state_reason",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="cluster",
            name="error",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="cluster",
            name="isolation",
            field=ReasonField(blank=True, default=str),
        ),
    ]
