from __future__ import annotations

from typing import ClassVar

from django.db import migrations

#: Names of tasks.
_RENAMED = (
    ("apps.jobs.tasks.sweep_launches", "apps.jobs.tasks.clean_up_launches"),
    ("apps.monitoring.tasks.judge_figures", "apps.monitoring.tasks.evaluate_health_rules"),
    ("apps.monitoring.tasks.prune_news", "apps.monitoring.tasks.prune_events"),
    ("apps.quotas.tasks.carry_out_rearrangements", "apps.quotas.tasks.reconcile_defragmentations"),
    ("apps.serving.tasks.sweep_launches", "apps.serving.tasks.clean_up_launches"),
)
_RENAME = "UPDATE persistence_loop_state SET name = %s WHERE name = %s"


class Migration(migrations.Migration):
    """Runs of controllers have their terms, and the new names of five tasks; the table keeps its name."""

    dependencies: ClassVar = [("persistence", "0002_loop_state")]

    operations: ClassVar = [
        migrations.RenameModel(old_name="LoopState", new_name="ControllerState"),
        migrations.RenameField(model_name="controllerstate", old_name="turns", new_name="runs"),
        migrations.RenameField(
            model_name="controllerstate", old_name="failed_turns", new_name="failed_runs"
        ),
        *(
            migrations.RunSQL([(_RENAME, [new, old])], [(_RENAME, [old, new])])
            for old, new in _RENAMED
        ),
    ]
