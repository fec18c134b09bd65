from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """The newest metrics of a card are called so; their table keeps its name."""

    dependencies: ClassVar = [("telemetry", "0002_names_of_fields")]

    operations: ClassVar = [
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
