from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    """Claims, what-if requests and usage have a user; forecasts say what they are blocked by."""

    dependencies: ClassVar = [("quotas", "0008_fewer_indexes")]

    operations: ClassVar = [
        migrations.RenameField(model_name="claim", old_name="person", new_name="user"),
        migrations.RenameField(model_name="whatif", old_name="person", new_name="user"),
        migrations.RenameField(model_name="usagerecord", old_name="person", new_name="user"),
        migrations.RenameField(model_name="usageday", old_name="person", new_name="user"),
        migrations.RenameField(
            model_name="queue", old_name="running_per_person", new_name="max_running_per_user"
        ),
        migrations.RenameField(
            model_name="claimforecast", old_name="waits_for", new_name="blocked_by"
        ),
        migrations.RenameField(
            model_name="claimforecast", old_name="made_at", new_name="created_at"
        ),
        # The database renames the column in the constraint, Django does not rename it in the model's state.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveConstraint(model_name="usageday", name="usage_day_once"),
                migrations.AddConstraint(
                    model_name="usageday",
                    constraint=models.UniqueConstraint(
                        fields=("day", "queue", "team", "user", "chip", "work_kind"),
                        name="usage_day_once",
                        nulls_distinct=False,
                    ),
                ),
            ]
        ),
    ]
