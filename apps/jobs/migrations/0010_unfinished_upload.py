import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0009_change_log"),
    ]

    operations = [
        migrations.CreateModel(
            name="UnfinishedUpload",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("path", models.CharField(max_length=300)),
                ("size", models.BigIntegerField()),
                ("started_at", models.DateTimeField()),
                ("reference", models.TextField(blank=True)),
                (
                    "attempt",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="unfinished_uploads",
                        to="jobs.attempt",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("attempt", "path"), name="unfinished_upload_path_once"
                    )
                ],
            },
        ),
    ]
