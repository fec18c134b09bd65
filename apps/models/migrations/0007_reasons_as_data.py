from django.db import migrations

from controlplane.persistence.earlier_reasons import AlterToReason
from controlplane.persistence.reasons import ReasonField


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0006_names_of_fields"),
    ]

    operations = [
        AlterToReason(
            model_name="artifact",
            name="deletion_reason",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="hubimport",
            name="error",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="modelversion",
            name="acceptance_reason",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="modelversiontransition",
            name="reason",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="storagerun",
            name="error",
            field=ReasonField(blank=True, default=str),
        ),
    ]
