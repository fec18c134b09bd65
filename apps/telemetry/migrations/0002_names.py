from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Sources have an error and unreachable parts; the newest metrics of a card are called so, in the same table."""

    dependencies: ClassVar = [("telemetry", "0001_initial")]

    operations: ClassVar = [
        migrations.RenameField(model_name="source", old_name="trouble", new_name="error"),
        migrations.RenameField(model_name="source", old_name="silent", new_name="unreachable"),
        migrations.RenameModel(old_name="CardFigures", new_name="CardMetrics"),
        migrations.AlterModelTable(name="cardmetrics", table="telemetry_cardfigures"),
        migrations.AlterModelOptions(
            name="cardmetrics", options={"verbose_name_plural": "card metrics"}
        ),
        migrations.AlterField(
            model_name="cardmetrics",
            name="card",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE,
                primary_key=True,
                related_name="metrics",
                serialize=False,
                to="fleet.card",
            ),
        ),
        migrations.AlterField(
            model_name="cardmetrics",
            name="source",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="metrics",
                to="telemetry.source",
            ),
        ),
    ]
