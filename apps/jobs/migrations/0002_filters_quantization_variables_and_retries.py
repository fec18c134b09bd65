import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import controlplane.persistence.models


class Migration(migrations.Migration):
    replaces = [
        ("jobs", "0002_saved_filters"),
        ("jobs", "0003_quantize_kind"),
        ("jobs", "0004_asked_chips"),
        ("jobs", "0005_secret_variables"),
        ("jobs", "0006_retry_policies"),
    ]

    dependencies = [
        ("accounts", "__first__"),
        ("jobs", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="SavedFilter",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "uid",
                    models.CharField(
                        default=controlplane.persistence.models.new_uid,
                        editable=False,
                        max_length=32,
                        unique=True,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("name", models.CharField(max_length=60)),
                ("query", models.CharField(max_length=1000)),
                ("is_default", models.BooleanField(default=False)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="job_filters",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("name",),
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "name"), name="job_filter_name_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("is_default", True)),
                        fields=("owner",),
                        name="job_filter_default_once",
                    ),
                ],
            },
        ),
        migrations.AlterField(
            model_name="job",
            name="kind",
            field=models.CharField(
                choices=[
                    ("finetune", "finetune"),
                    ("evaluate", "evaluate"),
                    ("quantize", "quantize"),
                    ("script", "script"),
                ],
                max_length=20,
            ),
        ),
        migrations.AddField(
            model_name="attempt",
            name="overrides",
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="job",
            name="asked_chips",
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.CreateModel(
            name="SecretVariable",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=128)),
                ("value", models.BinaryField(null=True)),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="secret_variables",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "ordering": ("name",),
                "constraints": [
                    models.UniqueConstraint(fields=("job", "name"), name="secret_variable_once")
                ],
            },
        ),
        migrations.AddField(
            model_name="attempt",
            name="retries",
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="attempt",
            name="retry_cause",
            field=models.CharField(blank=True, db_default="", max_length=20),
        ),
        migrations.AddField(
            model_name="attempt",
            name="starts_after",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="job",
            name="retry_policy",
            field=models.JSONField(
                blank=True, db_default=models.Value({}, models.JSONField()), default=dict
            ),
        ),
    ]
