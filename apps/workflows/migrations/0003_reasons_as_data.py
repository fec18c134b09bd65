from django.db import migrations

from controlplane.persistence.earlier_reasons import AlterToReason
from controlplane.persistence.reasons import ReasonField


class Migration(migrations.Migration):
    dependencies = [
        ("workflows", "0002_names_of_fields"),
    ]

    operations = [
        AlterToReason(
            model_name="pipeline",
            name="state_reason",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="pipelinetransition",
            name="reason",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="step",
            name="gate_verdict",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="step",
            name="state_reason",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="steptransition",
            name="reason",
            field=ReasonField(blank=True, default=str),
        ),
    ]
