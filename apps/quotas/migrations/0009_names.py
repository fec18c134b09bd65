from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Fields and defragmentations have the terms of the glossary; tables keep their names."""

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
        migrations.RenameModel(old_name="Rearrangement", new_name="Defragmentation"),
        migrations.AlterModelTable(name="defragmentation", table="quotas_rearrangement"),
        migrations.RenameModel(
            old_name="RearrangementTransition", new_name="DefragmentationTransition"
        ),
        migrations.AlterModelTable(
            name="defragmentationtransition", table="quotas_rearrangementtransition"
        ),
        migrations.RenameModel(old_name="RearrangementMove", new_name="DefragmentationMove"),
        migrations.AlterModelTable(name="defragmentationmove", table="quotas_rearrangementmove"),
        migrations.RenameField(
            model_name="defragmentationmove", old_name="rearrangement", new_name="defragmentation"
        ),
        migrations.AlterModelOptions(
            name="defragmentationmove", options={"ordering": ("defragmentation", "number")}
        ),
        migrations.AlterField(
            model_name="defragmentation",
            name="claim",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="defragmentations",
                to="quotas.claim",
            ),
        ),
        # The database renames the column in the constraint, Django does not rename it in the model's state.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveConstraint(
                    model_name="defragmentationmove", name="move_once_by_number"
                ),
                migrations.AddConstraint(
                    model_name="defragmentationmove",
                    constraint=models.UniqueConstraint(
                        fields=("defragmentation", "number"), name="move_once_by_number"
                    ),
                ),
            ]
        ),
        migrations.RenameField(model_name="queuechange", old_name="act", new_name="action"),
    ]
