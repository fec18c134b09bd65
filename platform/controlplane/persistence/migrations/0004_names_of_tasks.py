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
    """What is recorded of the runs of controllers keeps on under the new names of their tasks."""

    dependencies: ClassVar = [("persistence", "0003_controller_state")]

    operations: ClassVar = [
        *(
            migrations.RunSQL([(_RENAME, [new, old])], [(_RENAME, [old, new])])
            for old, new in _RENAMED
        ),
    ]
