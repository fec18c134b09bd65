from django.db import migrations

from controlplane.persistence.earlier_reasons import AlterToReason
from controlplane.persistence.reasons import ReasonField


class Migration(migrations.Migration):
    dependencies = [
        ("monitoring", "0009_names_of_controllers"),
    ]

    operations = [
        AlterToReason(
            model_name="alertdelivery",
            name="error",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="alertreceiver",
            name="last_error",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="alertrule",
            name="error",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="decision",
            name="reason",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="fault",
            name="message",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="isolation",
            name="reason",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="isolationtransition",
            name="reason",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="rollout",
            name="error",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="rolloutnode",
            name="reason",
            field=ReasonField(blank=True, default=str),
        ),
    ]
