from typing import Any

import django.db.models.deletion
from django.db import migrations, models


def classify_jobs(apps: Any, _schema_editor: Any) -> None:
    """Give existing jobs the class that has their priority now."""
    classes = apps.get_model("quotas", "PriorityClass").objects.filter(
        value=models.OuterRef("priority")
    )
    jobs = apps.get_model("jobs", "Job").objects
    jobs.update(priority_class=models.Subquery(classes.values("pk")[:1]))


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0011_unfinished_upload_digest"),
        ("quotas", "0014_watch_usage_records"),
    ]

    operations = [
        migrations.AddField(
            model_name="job",
            name="priority_class",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="quotas.priorityclass",
            ),
        ),
        migrations.RunPython(classify_jobs, migrations.RunPython.noop),
    ]
