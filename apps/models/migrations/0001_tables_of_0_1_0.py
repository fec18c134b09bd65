"""The tables of version 0.1.0."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

import controlplane.domain.registry.versions
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
_CREATED_BY = (
    "created_by",
    models.ForeignKey(on_delete=models.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL),
)
_ARTIFACT = ("artifact", models.OneToOneField(on_delete=models.PROTECT, to="registry.artifact"))


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("registry", "0001_initial"),
        ("registry", "0002_storage"),
        ("registry", "0003_quantized_versions"),
        ("registry", "0004_catalog"),
        ("registry", "0005_hub_imports"),
    ]
    dependencies = [("accounts", "0001_tables_of_0_1_0")]

    operations = [
        migrations.CreateModel(
            name="Artifact",
            fields=[
                *_UID_ROW,
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("model", "model"),
                            ("dataset", "dataset"),
                            ("code", "code"),
                            ("report", "report"),
                            ("outputs", "outputs"),
                        ],
                        max_length=20,
                    ),
                ),
                ("files", models.JSONField()),
                ("size", models.BigIntegerField()),
                ("made_by", models.CharField(blank=True, max_length=60, null=True, unique=True)),
                (
                    "team",
                    models.ForeignKey(
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="artifacts",
                        to="accounts.team",
                    ),
                ),
                ("deleted_at", models.DateTimeField(blank=True, null=True)),
                (
                    "deleted_by",
                    models.CharField(blank=True, db_default="", default="", max_length=150),
                ),
                ("deletion_reason", models.TextField(blank=True, db_default="", default="")),
                ("pinned_at", models.DateTimeField(blank=True, null=True)),
                ("removed_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "abstract": False,
                "indexes": [
                    models.Index(
                        condition=models.Q(("removed_at", None)),
                        fields=["team", "kind"],
                        name="artifact_with_bytes",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Dataset",
            fields=[
                *_UID_ROW,
                ("name", models.SlugField(max_length=80)),
                ("description", models.TextField(blank=True)),
                _CREATED_BY,
                (
                    "team",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="datasets", to="accounts.team"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("team", "name"), name="dataset_name_once_in_team"
                    )
                ],
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="DatasetVersion",
            fields=[
                *_UID_ROW,
                ("number", models.PositiveIntegerField()),
                ("content_hash", models.CharField(max_length=80)),
                ("source_name", models.CharField(max_length=200)),
                ("row_count", models.PositiveIntegerField()),
                ("statistics", models.JSONField()),
                ("preview", models.JSONField()),
                _ARTIFACT,
                _CREATED_BY,
                (
                    "dataset",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="versions", to="registry.dataset"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("dataset", "number"), name="dataset_version_number"
                    ),
                    models.UniqueConstraint(
                        fields=("dataset", "content_hash"), name="dataset_version_once"
                    ),
                ],
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="ModelLine",
            fields=[
                *_UID_ROW,
                ("name", models.SlugField(max_length=80)),
                ("description", models.TextField(blank=True)),
                (
                    "team",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="model_lines",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("team", "name"),
                        name="model_name_once_in_team",
                        nulls_distinct=False,
                    )
                ],
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="RetentionRule",
            fields=[
                _ID,
                ("enabled", models.BooleanField(default=False)),
                ("keep_versions", models.PositiveIntegerField(blank=True, null=True)),
                ("checkpoint_days", models.PositiveIntegerField(blank=True, null=True)),
                ("failed_days", models.PositiveIntegerField(blank=True, null=True)),
                ("log_days", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "team",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="retention_rule",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("team",), name="retention_once_for_team", nulls_distinct=False
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="StorageMeasure",
            fields=[
                _ID,
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("datasets", "datasets"),
                            ("versions", "versions"),
                            ("checkpoints", "checkpoints"),
                            ("job_files", "job_files"),
                            ("logs", "logs"),
                        ],
                        max_length=20,
                    ),
                ),
                ("owner_uid", models.CharField(max_length=32)),
                ("size", models.BigIntegerField()),
                ("measured_at", models.DateTimeField()),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="+", to="accounts.team"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("kind", "owner_uid"), name="measured_once")
                ],
                "indexes": [models.Index(fields=["team", "kind"], name="measure_by_team")],
            },
        ),
        migrations.CreateModel(
            name="StorageQuota",
            fields=[
                _ID,
                ("limit", models.BigIntegerField(help_text="Bytes.")),
                (
                    "team",
                    models.OneToOneField(
                        on_delete=models.CASCADE, related_name="storage_quota", to="accounts.team"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("limit__gte", 0)), name="quota_not_negative"
                    )
                ],
                "verbose_name_plural": "storage quotas",
            },
        ),
        migrations.CreateModel(
            name="StorageRun",
            fields=[
                *_UID_ROW,
                (
                    "kind",
                    models.CharField(
                        choices=[("retention", "retention"), ("garbage", "garbage")], max_length=20
                    ),
                ),
                ("dry_run", models.BooleanField(default=False)),
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("examined", models.PositiveIntegerField(default=0)),
                ("set_aside", models.PositiveIntegerField(default=0)),
                ("removed", models.PositiveIntegerField(default=0)),
                ("removed_bytes", models.BigIntegerField(default=0)),
                ("details", models.JSONField(blank=True, default=list)),
                ("cursor", models.CharField(blank=True, max_length=80)),
                ("error", models.TextField(blank=True)),
            ],
            options={
                "indexes": [models.Index(fields=["kind", "-id"], name="storage_run_by_kind")],
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="StoreSize",
            fields=[
                _ID,
                ("counted_at", models.DateTimeField()),
                ("blobs", models.BigIntegerField()),
                ("size", models.BigIntegerField()),
                ("set_aside", models.BigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name="CatalogModel",
            fields=[
                _ID,
                ("key", models.CharField(max_length=80, unique=True)),
                ("title", models.CharField(max_length=120)),
                ("family", models.CharField(db_index=True, max_length=60)),
                ("modality", models.CharField(max_length=20)),
                (
                    "tasks",
                    ArrayField(base_field=models.CharField(max_length=40), default=list, size=None),
                ),
                ("parameters", models.BigIntegerField(blank=True, null=True)),
                ("active_parameters", models.BigIntegerField(blank=True, null=True)),
                ("architecture", models.CharField(max_length=120)),
                ("layers", models.PositiveIntegerField(blank=True, null=True)),
                ("hidden", models.PositiveIntegerField(blank=True, null=True)),
                ("heads", models.PositiveIntegerField(blank=True, null=True)),
                ("kv_heads", models.PositiveIntegerField(blank=True, null=True)),
                ("head_dim", models.PositiveIntegerField(blank=True, null=True)),
                ("intermediate", models.PositiveIntegerField(blank=True, null=True)),
                ("attention", models.CharField(blank=True, max_length=60)),
                ("mla", models.JSONField(blank=True, null=True)),
                ("moe", models.JSONField(blank=True, null=True)),
                ("components", models.JSONField(blank=True, default=dict)),
                ("context_length", models.PositiveIntegerField(blank=True, null=True)),
                ("context_extended", models.PositiveIntegerField(blank=True, null=True)),
                ("dtype", models.CharField(max_length=60)),
                ("kv_bytes_per_token", models.PositiveIntegerField(blank=True, null=True)),
                ("licence", models.CharField(blank=True, max_length=60)),
                ("hf_repo", models.CharField(blank=True, db_index=True, max_length=120)),
                ("modelscope_id", models.CharField(blank=True, db_index=True, max_length=120)),
                (
                    "prequantized",
                    ArrayField(
                        base_field=models.CharField(max_length=120),
                        blank=True,
                        default=list,
                        size=None,
                    ),
                ),
                ("confidence", models.JSONField(default=dict)),
                (
                    "evidence",
                    ArrayField(base_field=models.CharField(max_length=40), default=list, size=None),
                ),
                ("notes", models.TextField(blank=True)),
                ("digest", models.CharField(max_length=64)),
                ("withdrawn_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={"ordering": ("key",)},
        ),
        migrations.CreateModel(
            name="ModelVersion",
            fields=[
                *_UID_ROW,
                ("number", models.PositiveIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("importing", "importing"),
                            ("ready", "ready"),
                            ("failed", "failed"),
                            ("deleted", "deleted"),
                            ("removed", "removed"),
                        ],
                        default=controlplane.domain.registry.versions.ModelState["IMPORTING"],
                        max_length=20,
                    ),
                ),
                ("source_path", models.TextField(blank=True)),
                ("architecture", models.CharField(blank=True, max_length=120)),
                ("context_length", models.PositiveIntegerField(default=0)),
                ("parameters", models.BigIntegerField(default=0)),
                ("job_uid", models.CharField(blank=True, db_index=True, max_length=32)),
                (
                    "attempt_uid",
                    models.CharField(blank=True, max_length=32, null=True, unique=True),
                ),
                ("metrics", models.JSONField(blank=True, default=dict)),
                (
                    "artifact",
                    models.OneToOneField(
                        blank=True, null=True, on_delete=models.PROTECT, to="registry.artifact"
                    ),
                ),
                (
                    "base",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="derived",
                        to="registry.modelversion",
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "dataset_version",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="models",
                        to="registry.datasetversion",
                    ),
                ),
                (
                    "line",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="versions", to="registry.modelline"
                    ),
                ),
                (
                    "acceptance",
                    models.CharField(
                        choices=[
                            ("accepted", "accepted"),
                            ("rejected", "rejected"),
                            ("overridden", "overridden"),
                        ],
                        db_default="accepted",
                        default=controlplane.domain.registry.versions.GateDecision["ACCEPTED"],
                        max_length=20,
                    ),
                ),
                ("acceptance_reason", models.TextField(blank=True, db_default="", default="")),
                ("config", models.JSONField(blank=True, null=True)),
                ("format", models.CharField(blank=True, db_default="", default="", max_length=40)),
                ("scheme", models.CharField(blank=True, db_default="", default="", max_length=40)),
                (
                    "catalog_model",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="versions",
                        to="registry.catalogmodel",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("line", "number"), name="model_version_number")
                ],
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="Evaluation",
            fields=[
                *_UID_ROW,
                ("split", models.CharField(max_length=20)),
                ("metrics", models.JSONField()),
                ("job_uid", models.CharField(blank=True, db_index=True, max_length=32)),
                ("attempt_uid", models.CharField(max_length=32, unique=True)),
                _ARTIFACT,
                (
                    "dataset_version",
                    models.ForeignKey(
                        on_delete=models.PROTECT,
                        related_name="evaluations",
                        to="registry.datasetversion",
                    ),
                ),
                (
                    "model_version",
                    models.ForeignKey(
                        on_delete=models.PROTECT,
                        related_name="evaluations",
                        to="registry.modelversion",
                    ),
                ),
            ],
            options={"ordering": ("-id",)},
        ),
        migrations.CreateModel(
            name="ModelVersionTransition",
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
                        to="registry.modelversion",
                    ),
                ),
            ],
            options={"abstract": False, "ordering": ("id",)},
        ),
        migrations.CreateModel(
            name="CatalogCell",
            fields=[
                _ID,
                (
                    "task",
                    models.CharField(
                        choices=[("train", "train"), ("serve", "serve"), ("quantize", "quantize")],
                        max_length=20,
                    ),
                ),
                ("vendor", models.CharField(max_length=40)),
                ("engine", models.CharField(max_length=40)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("supported", "supported"),
                            ("experimental", "experimental"),
                            ("legacy", "legacy"),
                            ("unknown", "unknown"),
                            ("unsupported", "unsupported"),
                        ],
                        max_length=20,
                    ),
                ),
                ("versions", models.CharField(blank=True, max_length=60)),
                (
                    "methods",
                    ArrayField(
                        base_field=models.CharField(max_length=40),
                        blank=True,
                        default=list,
                        size=None,
                    ),
                ),
                (
                    "evidence",
                    ArrayField(
                        base_field=models.CharField(max_length=40),
                        blank=True,
                        default=list,
                        size=None,
                    ),
                ),
                (
                    "caveat",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("architecture", "architecture"),
                            ("untried", "untried"),
                            ("news", "news"),
                            ("back_end", "back_end"),
                            ("generic", "generic"),
                            ("loaded", "loaded"),
                            ("hearsay", "hearsay"),
                        ],
                        max_length=40,
                    ),
                ),
                (
                    "model",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="cells", to="registry.catalogmodel"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("model", "task", "vendor", "engine"), name="catalog_cell_once"
                    )
                ],
                "ordering": ("task", "vendor", "engine"),
            },
        ),
        migrations.CreateModel(
            name="HubImport",
            fields=[
                *_UID_ROW,
                ("hub", models.CharField(max_length=40)),
                ("address", models.CharField(max_length=300)),
                ("repository", models.CharField(max_length=200)),
                ("revision", models.CharField(max_length=200)),
                ("commit", models.CharField(max_length=200)),
                ("files", models.JSONField()),
                ("size", models.BigIntegerField()),
                ("stored", models.JSONField(default=list)),
                ("received", models.BigIntegerField(default=0)),
                ("spared", models.BigIntegerField(default=0)),
                ("speed", models.FloatField(blank=True, null=True)),
                ("failures", models.PositiveIntegerField(default=0)),
                ("retry_at", models.DateTimeField(blank=True, null=True)),
                ("trouble", models.TextField(blank=True)),
                ("served_at", models.DateTimeField(blank=True, null=True)),
                (
                    "version",
                    models.OneToOneField(
                        on_delete=models.CASCADE,
                        related_name="hub_import",
                        to="registry.modelversion",
                    ),
                ),
            ],
            options={"ordering": ("-id",)},
        ),
    ]
