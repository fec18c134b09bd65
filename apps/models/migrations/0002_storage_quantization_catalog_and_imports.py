import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import controlplane.domain.registry.versions
import controlplane.persistence.models


class Migration(migrations.Migration):
    replaces = [
        ("registry", "0002_storage"),
        ("registry", "0003_quantized_versions"),
        ("registry", "0004_catalog"),
        ("registry", "0005_hub_imports"),
    ]

    dependencies = [
        ("accounts", "0003_append_only_and_staff"),
        ("registry", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="RetentionRule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("enabled", models.BooleanField(default=False)),
                ("keep_versions", models.PositiveIntegerField(blank=True, null=True)),
                ("checkpoint_days", models.PositiveIntegerField(blank=True, null=True)),
                ("failed_days", models.PositiveIntegerField(blank=True, null=True)),
                ("log_days", models.PositiveIntegerField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="StorageMeasure",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
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
            ],
        ),
        migrations.CreateModel(
            name="StorageQuota",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("limit", models.BigIntegerField(help_text="Bytes.")),
            ],
            options={
                "verbose_name_plural": "storage quotas",
            },
        ),
        migrations.CreateModel(
            name="StorageRun",
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
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="StoreSize",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("counted_at", models.DateTimeField()),
                ("blobs", models.BigIntegerField()),
                ("size", models.BigIntegerField()),
                ("set_aside", models.BigIntegerField()),
            ],
        ),
        migrations.AddField(
            model_name="artifact",
            name="deleted_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="artifact",
            name="deleted_by",
            field=models.CharField(blank=True, db_default="", default="", max_length=150),
        ),
        migrations.AddField(
            model_name="artifact",
            name="deletion_reason",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AddField(
            model_name="artifact",
            name="pinned_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="artifact",
            name="removed_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AlterField(
            model_name="modelversion",
            name="state",
            field=models.CharField(
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
        migrations.AddIndex(
            model_name="artifact",
            index=models.Index(
                condition=models.Q(("removed_at", None)),
                fields=["team", "kind"],
                name="artifact_with_bytes",
            ),
        ),
        migrations.AddField(
            model_name="retentionrule",
            name="team",
            field=models.OneToOneField(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="retention_rule",
                to="accounts.team",
            ),
        ),
        migrations.AddField(
            model_name="storagemeasure",
            name="team",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="accounts.team"
            ),
        ),
        migrations.AddField(
            model_name="storagequota",
            name="team",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="storage_quota",
                to="accounts.team",
            ),
        ),
        migrations.AddIndex(
            model_name="storagerun",
            index=models.Index(fields=["kind", "-id"], name="storage_run_by_kind"),
        ),
        migrations.AddConstraint(
            model_name="retentionrule",
            constraint=models.UniqueConstraint(
                fields=("team",), name="retention_once_for_team", nulls_distinct=False
            ),
        ),
        migrations.AddIndex(
            model_name="storagemeasure",
            index=models.Index(fields=["team", "kind"], name="measure_by_team"),
        ),
        migrations.AddConstraint(
            model_name="storagemeasure",
            constraint=models.UniqueConstraint(fields=("kind", "owner_uid"), name="measured_once"),
        ),
        migrations.AddConstraint(
            model_name="storagequota",
            constraint=models.CheckConstraint(
                condition=models.Q(("limit__gte", 0)), name="quota_not_negative"
            ),
        ),
        migrations.AddField(
            model_name="modelversion",
            name="acceptance",
            field=models.CharField(
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
        migrations.AddField(
            model_name="modelversion",
            name="acceptance_reason",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AddField(
            model_name="modelversion",
            name="config",
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="modelversion",
            name="format",
            field=models.CharField(blank=True, db_default="", default="", max_length=40),
        ),
        migrations.AddField(
            model_name="modelversion",
            name="scheme",
            field=models.CharField(blank=True, db_default="", default="", max_length=40),
        ),
        migrations.CreateModel(
            name="CatalogModel",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=80, unique=True)),
                ("title", models.CharField(max_length=120)),
                ("family", models.CharField(db_index=True, max_length=60)),
                ("modality", models.CharField(max_length=20)),
                (
                    "tasks",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=40), default=list, size=None
                    ),
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
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=120),
                        blank=True,
                        default=list,
                        size=None,
                    ),
                ),
                ("confidence", models.JSONField(default=dict)),
                (
                    "evidence",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=40), default=list, size=None
                    ),
                ),
                ("notes", models.TextField(blank=True)),
                ("digest", models.CharField(max_length=64)),
                ("withdrawn_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ("key",),
            },
        ),
        migrations.AddField(
            model_name="modelversion",
            name="catalog_model",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="versions",
                to="registry.catalogmodel",
            ),
        ),
        migrations.CreateModel(
            name="CatalogCell",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
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
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=40),
                        blank=True,
                        default=list,
                        size=None,
                    ),
                ),
                (
                    "evidence",
                    django.contrib.postgres.fields.ArrayField(
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
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="cells",
                        to="registry.catalogmodel",
                    ),
                ),
            ],
            options={
                "ordering": ("task", "vendor", "engine"),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("model", "task", "vendor", "engine"), name="catalog_cell_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="HubImport",
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
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="hub_import",
                        to="registry.modelversion",
                    ),
                ),
            ],
            options={
                "ordering": ("-id",),
            },
        ),
    ]
