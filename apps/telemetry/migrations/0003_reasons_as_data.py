from django.db import migrations

from controlplane.persistence.earlier_reasons import AlterToReason
from controlplane.persistence.reasons import ReasonsField


class Migration(migrations.Migration):
    dependencies = [
        ("telemetry", "0002_names"),
    ]

    operations = [
        AlterToReason("source", "error"),
        AlterToReason("source", "stalled"),
        migrations.AlterField(
            model_name="source",
            name="refusals",
            field=ReasonsField(blank=True, default=list),
        ),
        migrations.AlterField(
            model_name="source",
            name="unreachable",
            field=ReasonsField(blank=True, default=dict),
        ),
    ]
