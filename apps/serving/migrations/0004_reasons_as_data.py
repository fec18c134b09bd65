from django.db import migrations

from controlplane.persistence.earlier_reasons import AlterToReason
from controlplane.persistence.reasons import ReasonField


class Migration(migrations.Migration):
    dependencies = [
        ("serving", "0003_gateway_call"),
    ]

    operations = [
        AlterToReason(
            model_name="deployment",
            name="state_reason",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="deploymenttransition",
            name="reason",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="replica",
            name="message",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="replicatransition",
            name="reason",
            field=ReasonField(blank=True, default=str),
        ),
    ]
