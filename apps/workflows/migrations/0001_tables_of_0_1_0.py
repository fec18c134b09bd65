"""The tables of version 0.1.0."""

from django.conf import settings
from django.db import migrations, models

import controlplane.domain.pipelines.lifecycle
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
        ("workflows", "0001_initial"),
    ]
    dependencies = [
        ("accounts", "0001_tables_of_0_1_0"),
        ("jobs", "0001_tables_of_0_1_0"),
        ("quotas", "0001_tables_of_0_1_0"),
        ("registry", "0001_tables_of_0_1_0"),
        ("serving", "0001_tables_of_0_1_0"),
    ]

    operations = [
        migrations.CreateModel(
            name="Pipeline",
            fields=[
                *_UID_ROW,
                ("leased_until", models.DateTimeField(blank=True, editable=False, null=True)),
                ("lease_token", models.BigIntegerField(default=0, editable=False)),
                ("name", models.CharField(max_length=120)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "running"),
                            ("held", "held"),
                            ("succeeded", "succeeded"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                        ],
                        default=controlplane.domain.pipelines.lifecycle.PipelineState["RUNNING"],
                        max_length=20,
                    ),
                ),
                ("state_reason", models.TextField(blank=True)),
                ("cancel_requested_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "cancel_requested_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=models.PROTECT,
                        related_name="pipelines",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "model_version",
                    models.ForeignKey(
                        on_delete=models.PROTECT,
                        related_name="pipelines",
                        to="registry.modelversion",
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="pipelines", to="quotas.queue"
                    ),
                ),
                (
                    "runs_as",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="pipelines", to="accounts.team"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["team", "-id"], name="workflows_p_team_id_4cc235_idx"),
                    models.Index(
                        condition=models.Q(
                            (
                                "state",
                                controlplane.domain.pipelines.lifecycle.PipelineState["RUNNING"],
                            )
                        ),
                        fields=["id"],
                        name="pipeline_running",
                    ),
                ],
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="PipelineTransition",
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
                        on_delete=models.CASCADE,
                        related_name="transitions",
                        to="workflows.pipeline",
                    ),
                ),
            ],
            options={"abstract": False, "ordering": ("id",)},
        ),
        migrations.CreateModel(
            name="Step",
            fields=[
                *_UID_ROW,
                ("number", models.PositiveIntegerField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("finetune", "finetune"),
                            ("evaluate", "evaluate"),
                            ("quantize", "quantize"),
                            ("deploy", "deploy"),
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
                            ("held", "held"),
                            ("succeeded", "succeeded"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                            ("skipped", "skipped"),
                        ],
                        default=controlplane.domain.pipelines.lifecycle.StepState["WAITING"],
                        max_length=20,
                    ),
                ),
                ("state_reason", models.TextField(blank=True)),
                ("engine", models.CharField(blank=True, max_length=40)),
                ("spec", models.JSONField(blank=True, default=dict)),
                ("chips", models.JSONField()),
                ("cards", models.PositiveIntegerField(default=1)),
                ("output_name", models.SlugField(blank=True, max_length=80)),
                ("deployment_name", models.SlugField(blank=True, max_length=80)),
                ("replicas", models.PositiveIntegerField(default=1)),
                ("gate", models.JSONField(blank=True, null=True)),
                ("figures", models.JSONField(blank=True, default=dict)),
                ("gate_passed", models.BooleanField(blank=True, null=True)),
                ("gate_verdict", models.TextField(blank=True)),
                ("waved_by", models.CharField(blank=True, max_length=150)),
                ("waved_reason", models.TextField(blank=True)),
                ("began_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "dataset_version",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to="registry.datasetversion",
                    ),
                ),
                (
                    "deployment",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to="serving.deployment",
                    ),
                ),
                (
                    "job",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="pipeline_step",
                        to="jobs.job",
                    ),
                ),
                (
                    "made",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to="registry.modelversion",
                    ),
                ),
                (
                    "model_version",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to="registry.modelversion",
                    ),
                ),
                (
                    "pipeline",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="steps", to="workflows.pipeline"
                    ),
                ),
                (
                    "revision",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to="serving.revision",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("pipeline", "number"), name="pipeline_step_number"
                    )
                ],
                "ordering": ("number",),
            },
        ),
        migrations.CreateModel(
            name="StepTransition",
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
                        on_delete=models.CASCADE, related_name="transitions", to="workflows.step"
                    ),
                ),
            ],
            options={"abstract": False, "ordering": ("id",)},
        ),
    ]
