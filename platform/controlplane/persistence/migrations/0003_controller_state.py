from __future__ import annotations

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    """What is recorded of the runs of controllers has their terms; the table keeps its name."""

    dependencies: ClassVar = [("persistence", "0002_loop_state")]

    operations: ClassVar = [
        migrations.RenameModel(old_name="LoopState", new_name="ControllerState"),
        migrations.RenameField(model_name="controllerstate", old_name="turns", new_name="runs"),
        migrations.RenameField(
            model_name="controllerstate", old_name="failed_turns", new_name="failed_runs"
        ),
    ]
