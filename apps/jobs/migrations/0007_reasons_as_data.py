from django.db import migrations

from controlplane.persistence.earlier_reasons import AlterToReason
from controlplane.persistence.reasons import ReasonField


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0001_tables_of_0_1_0"),
    ]

    operations = [
        AlterToReason(
            model_name="attempt",
            name="message",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="attempttransition",
            name="reason",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="job",
            name="state_reason",
            field=ReasonField(blank=True, default=str),
        ),
        AlterToReason(
            model_name="jobtransition",
            name="reason",
            field=ReasonField(blank=True, default=str),
        ),
    ]
