"""The tables of version 0.1.0."""

from django.conf import settings
from django.db import migrations, models

import controlplane.domain.jobs.lifecycle
from controlplane.persistence.models import new_uid

_ID = (
    "id",
    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
)
_UID_ROW = (
    _ID,
    ("uid", models.CharField(default=new_uid, editable=False, max_length=32, unique=True)),
    ("created_at", models.DateTimeField(auto_now_add=True)),
)


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("jobs", "0001_initial"),
        ("jobs", "0002_saved_filters"),
        ("jobs", "0003_quantize_kind"),
        ("jobs", "0004_asked_chips"),
        ("jobs", "0005_secret_variables"),
        ("jobs", "0006_retry_policies"),
    ]
    dependencies = [
        ("accounts", "0001_tables_of_0_1_0"),
        ("fleet", "0001_tables_of_0_1_0"),
        ("quotas", "0001_tables_of_0_1_0"),
        ("registry", "0001_tables_of_0_1_0"),
    ]

    operations = [
        migrations.CreateModel(
            name="Job",
            fields=[
                *_UID_ROW,
                ("name", models.CharField(max_length=120)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("finetune", "finetune"),
                            ("evaluate", "evaluate"),
                            ("quantize", "quantize"),
                            ("script", "script"),
                        ],
                        max_length=20,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("running", "running"),
                            ("succeeded", "succeeded"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                        ],
                        default=controlplane.domain.jobs.lifecycle.JobState["WAITING"],
                        max_length=20,
                    ),
                ),
                ("state_reason", models.TextField(blank=True)),
                ("engine", models.CharField(max_length=40)),
                ("spec", models.JSONField()),
                ("output_name", models.SlugField(blank=True, max_length=80)),
                ("output_shared", models.BooleanField(default=False)),
                ("chips", models.JSONField()),
                ("shape", models.JSONField()),
                ("priority", models.IntegerField(default=0)),
                ("run_seconds", models.PositiveIntegerField(blank=True, null=True)),
                ("cancel_requested_at", models.DateTimeField(blank=True, null=True)),
                ("cancel_requested_by", models.CharField(blank=True, max_length=150)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "code",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to="registry.artifact",
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="jobs", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "dataset_version",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="jobs",
                        to="registry.datasetversion",
                    ),
                ),
                (
                    "model_version",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="jobs",
                        to="registry.modelversion",
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="jobs", to="quotas.queue"
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="jobs", to="accounts.team"
                    ),
                ),
                ("asked_chips", models.JSONField(blank=True, null=True)),
                (
                    "retry_policy",
                    models.JSONField(
                        blank=True, db_default=models.Value({}, models.JSONField()), default=dict
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["team", "-id"], name="jobs_job_team_id_2dbce2_idx"),
                    models.Index(fields=["state", "-id"], name="jobs_job_state_773274_idx"),
                ],
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                *_UID_ROW,
                ("leased_until", models.DateTimeField(blank=True, editable=False, null=True)),
                ("lease_token", models.BigIntegerField(default=0, editable=False)),
                ("number", models.PositiveIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("admitted", "admitted"),
                            ("launched", "launched"),
                            ("running", "running"),
                            ("stopping", "stopping"),
                            ("completing", "completing"),
                            ("succeeded", "succeeded"),
                            ("failed", "failed"),
                            ("stopped", "stopped"),
                        ],
                        default=controlplane.domain.jobs.lifecycle.AttemptState["PENDING"],
                        max_length=20,
                    ),
                ),
                ("message", models.TextField(blank=True)),
                ("claim_uid", models.CharField(blank=True, db_index=True, max_length=32)),
                ("chip", models.CharField(blank=True, max_length=60)),
                ("stop_reason", models.CharField(blank=True, max_length=20)),
                ("exit_code", models.IntegerField(blank=True, null=True)),
                ("exit_cause", models.CharField(blank=True, max_length=20)),
                ("log_tail", models.TextField(blank=True)),
                ("log_digest", models.CharField(blank=True, max_length=80)),
                ("progress", models.JSONField(blank=True, default=dict)),
                ("reported_at", models.DateTimeField(blank=True, null=True)),
                ("manifest", models.JSONField(blank=True, null=True)),
                ("admitted_at", models.DateTimeField(blank=True, null=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("removed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to="fleet.cluster",
                    ),
                ),
                (
                    "continues",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to="jobs.attempt",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="attempts", to="jobs.job"
                    ),
                ),
                ("overrides", models.JSONField(blank=True, null=True)),
                ("retries", models.PositiveSmallIntegerField(db_default=0, default=0)),
                ("retry_cause", models.CharField(blank=True, db_default="", max_length=20)),
                ("starts_after", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("job", "number"), name="attempt_number"),
                    models.UniqueConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                (
                                    controlplane.domain.jobs.lifecycle.AttemptState["SUCCEEDED"],
                                    controlplane.domain.jobs.lifecycle.AttemptState["FAILED"],
                                    controlplane.domain.jobs.lifecycle.AttemptState["STOPPED"],
                                ),
                            ),
                            _negated=True,
                        ),
                        fields=("job",),
                        name="attempt_one_live_per_job",
                    ),
                ],
                "ordering": ("number",),
            },
        ),
        migrations.CreateModel(
            name="AttemptTransition",
            fields=[
                _ID,
                ("from_state", models.CharField(max_length=20)),
                ("event", models.CharField(max_length=20)),
                ("to_state", models.CharField(max_length=20)),
                ("reason", models.TextField(blank=True)),
                ("actor", models.CharField(blank=True, max_length=150)),
                ("at", models.DateTimeField()),
                (
                    "entity",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="transitions", to="jobs.attempt"
                    ),
                ),
            ],
            options={"abstract": False, "ordering": ("id",)},
        ),
        migrations.CreateModel(
            name="JobTransition",
            fields=[
                _ID,
                ("from_state", models.CharField(max_length=20)),
                ("event", models.CharField(max_length=20)),
                ("to_state", models.CharField(max_length=20)),
                ("reason", models.TextField(blank=True)),
                ("actor", models.CharField(blank=True, max_length=150)),
                ("at", models.DateTimeField()),
                (
                    "entity",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="transitions", to="jobs.job"
                    ),
                ),
            ],
            options={"abstract": False, "ordering": ("id",)},
        ),
        migrations.CreateModel(
            name="ProgressPoint",
            fields=[
                _ID,
                ("step", models.PositiveIntegerField()),
                ("at", models.DateTimeField()),
                ("values", models.JSONField()),
                (
                    "attempt",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="points", to="jobs.attempt"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("attempt", "step"), name="progress_point_once")
                ],
                "ordering": ("step",),
            },
        ),
        migrations.CreateModel(
            name="UploadedFile",
            fields=[
                _ID,
                ("path", models.CharField(max_length=300)),
                ("digest", models.CharField(max_length=80)),
                ("size", models.BigIntegerField()),
                (
                    "attempt",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="uploads", to="jobs.attempt"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("attempt", "path"), name="uploaded_path_once")
                ]
            },
        ),
        migrations.CreateModel(
            name="SavedFilter",
            fields=[
                *_UID_ROW,
                ("name", models.CharField(max_length=60)),
                ("query", models.CharField(max_length=1000)),
                ("is_default", models.BooleanField(default=False)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=models.CASCADE,
                        related_name="job_filters",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "name"), name="job_filter_name_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("is_default", True)),
                        fields=("owner",),
                        name="job_filter_default_once",
                    ),
                ],
                "ordering": ("name",),
            },
        ),
        migrations.CreateModel(
            name="SecretVariable",
            fields=[
                _ID,
                ("name", models.CharField(max_length=128)),
                ("value", models.BinaryField(null=True)),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="secret_variables", to="jobs.job"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("job", "name"), name="secret_variable_once")
                ],
                "ordering": ("name",),
            },
        ),
    ]
