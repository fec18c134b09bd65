from __future__ import annotations

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    """Steps have metrics, an output version and the override of their gate; gates name a metric."""

    dependencies: ClassVar = [("workflows", "0001_tables_of_0_1_0")]

    operations: ClassVar = [
        migrations.RenameField(model_name="step", old_name="figures", new_name="metrics"),
        migrations.RenameField(model_name="step", old_name="made", new_name="output_version"),
        migrations.RenameField(model_name="step", old_name="waved_by", new_name="overridden_by"),
        migrations.RenameField(
            model_name="step", old_name="waved_reason", new_name="override_reason"
        ),
        migrations.RunSQL(
            "UPDATE workflows_step SET gate = (gate - 'figure') || jsonb_build_object('metric', gate->'figure')"
            " WHERE gate ? 'figure'",
            "UPDATE workflows_step SET gate = (gate - 'metric') || jsonb_build_object('figure', gate->'metric')"
            " WHERE gate ? 'metric'",
        ),
    ]
