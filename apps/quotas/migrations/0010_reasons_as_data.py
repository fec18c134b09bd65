from django.db import migrations

from controlplane.persistence.earlier_reasons import AlterToReason
from controlplane.persistence.reasons import ReasonField


class Migration(migrations.Migration):
    dependencies = [
        ("quotas", "0009_names"),
    ]

    operations = [
        AlterToReason(
            model_name="claim",
            name="explanation",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="claimforecast",
            name="reason",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="claimtransition",
            name="reason",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="defragmentation",
            name="reason",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="defragmentation",
            name="state_reason",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="defragmentationtransition",
            name="reason",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="movetransition",
            name="reason",
            field=ReasonField(blank=True, default=str),
        ),
    ]
