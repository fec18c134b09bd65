"""The tables of version 0.1.0."""

from django.conf import settings
from django.db import migrations, models

import controlplane.domain.serving.lifecycle
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


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("serving", "0001_initial"),
        ("serving", "0002_names_of_tables"),
    ]
    dependencies = [
        ("accounts", "0001_tables_of_0_1_0"),
        ("fleet", "0001_tables_of_0_1_0"),
        ("quotas", "0001_tables_of_0_1_0"),
        ("registry", "0001_tables_of_0_1_0"),
    ]

    operations = [
        migrations.CreateModel(
            name="Gateway",
            fields=[
                _ID,
                ("name", models.CharField(max_length=80, unique=True)),
                ("last_seen_at", models.DateTimeField()),
                ("version", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="GatewaySnapshot",
            fields=[
                ("version", models.BigAutoField(primary_key=True, serialize=False)),
                ("digest", models.CharField(max_length=64)),
                ("body", models.BinaryField()),
                ("issued_at", models.DateTimeField()),
            ],
            options={"ordering": ("-version",)},
        ),
        migrations.CreateModel(
            name="ApiKey",
            fields=[
                *_UID_ROW,
                ("name", models.CharField(max_length=80)),
                ("prefix", models.CharField(max_length=16)),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("routes", models.JSONField(blank=True, null=True)),
                ("requests_per_minute", models.PositiveIntegerField(blank=True, null=True)),
                ("tokens_per_minute", models.PositiveIntegerField(blank=True, null=True)),
                ("concurrency", models.PositiveIntegerField(blank=True, null=True)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                _CREATED_BY,
                (
                    "team",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="api_keys", to="accounts.team"
                    ),
                ),
            ],
            options={"ordering": ("-id",), "verbose_name": "API key"},
        ),
        migrations.CreateModel(
            name="Deployment",
            fields=[
                *_UID_ROW,
                ("leased_until", models.DateTimeField(blank=True, editable=False, null=True)),
                ("lease_token", models.BigIntegerField(default=0, editable=False)),
                ("name", models.SlugField(max_length=80)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("starting", "starting"),
                            ("ready", "ready"),
                            ("degraded", "degraded"),
                            ("stopping", "stopping"),
                            ("stopped", "stopped"),
                        ],
                        default=controlplane.domain.serving.lifecycle.DeploymentState["STARTING"],
                        max_length=20,
                    ),
                ),
                ("state_reason", models.TextField(blank=True)),
                ("replica_count", models.PositiveIntegerField(default=1)),
                ("deleted_at", models.DateTimeField(blank=True, null=True)),
                _CREATED_BY,
                (
                    "queue",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="deployments", to="quotas.queue"
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="deployments", to="accounts.team"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("deleted_at", None)),
                        fields=("name",),
                        name="deployment_name_once",
                    )
                ],
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="DeploymentTransition",
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
                        to="serving.deployment",
                    ),
                ),
            ],
            options={"abstract": False, "ordering": ("id",)},
        ),
        migrations.CreateModel(
            name="Revision",
            fields=[
                *_UID_ROW,
                ("number", models.PositiveIntegerField()),
                ("engine", models.CharField(max_length=40)),
                ("spec", models.JSONField()),
                ("chips", models.JSONField()),
                ("cards", models.PositiveIntegerField(default=1)),
                _CREATED_BY,
                (
                    "deployment",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="revisions", to="serving.deployment"
                    ),
                ),
                (
                    "model_version",
                    models.ForeignKey(
                        on_delete=models.PROTECT,
                        related_name="revisions",
                        to="registry.modelversion",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("deployment", "number"), name="revision_number")
                ],
                "ordering": ("-number",),
            },
        ),
        migrations.CreateModel(
            name="Backend",
            fields=[
                *_UID_ROW,
                ("chips", models.JSONField()),
                (
                    "revision",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="backends", to="serving.revision"
                    ),
                ),
            ],
            options={"ordering": ("id",)},
        ),
        migrations.CreateModel(
            name="Replica",
            fields=[
                *_UID_ROW,
                ("leased_until", models.DateTimeField(blank=True, editable=False, null=True)),
                ("lease_token", models.BigIntegerField(default=0, editable=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("admitted", "admitted"),
                            ("starting", "starting"),
                            ("ready", "ready"),
                            ("backoff", "backoff"),
                            ("stopping", "stopping"),
                            ("stopped", "stopped"),
                        ],
                        default=controlplane.domain.serving.lifecycle.ReplicaState["PENDING"],
                        max_length=20,
                    ),
                ),
                ("message", models.TextField(blank=True)),
                ("claim_uid", models.CharField(blank=True, db_index=True, max_length=32)),
                ("chip", models.CharField(blank=True, max_length=60)),
                ("generation", models.PositiveIntegerField(default=1)),
                ("crashes", models.PositiveIntegerField(default=0)),
                ("restart_at", models.DateTimeField(blank=True, null=True)),
                ("ready_at", models.DateTimeField(blank=True, null=True)),
                ("url", models.CharField(blank=True, max_length=200)),
                ("log_tail", models.TextField(blank=True)),
                ("stop_reason", models.CharField(blank=True, max_length=20)),
                (
                    "backend",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="replicas", to="serving.backend"
                    ),
                ),
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
            ],
            options={"ordering": ("id",)},
        ),
        migrations.CreateModel(
            name="ReplicaTransition",
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
                        on_delete=models.CASCADE, related_name="transitions", to="serving.replica"
                    ),
                ),
            ],
            options={"abstract": False, "ordering": ("id",)},
        ),
        migrations.CreateModel(
            name="Route",
            fields=[
                *_UID_ROW,
                ("name", models.SlugField(max_length=80, unique=True)),
                (
                    "deployment",
                    models.OneToOneField(
                        on_delete=models.CASCADE, related_name="route", to="serving.deployment"
                    ),
                ),
            ],
            options={"abstract": False},
        ),
        migrations.CreateModel(
            name="RouteBackend",
            fields=[
                _ID,
                ("weight", models.PositiveIntegerField()),
                (
                    "backend",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="+", to="serving.backend"
                    ),
                ),
                (
                    "route",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="weights", to="serving.route"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("route", "backend"), name="route_backend_once")
                ]
            },
        ),
        migrations.CreateModel(
            name="UsageBatch",
            fields=[
                _ID,
                ("gateway", models.CharField(max_length=80)),
                ("sequence", models.BigIntegerField()),
                ("received_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("gateway", "sequence"), name="usage_batch_once")
                ],
                "verbose_name_plural": "usage batches",
            },
        ),
        migrations.CreateModel(
            name="UsageRecord",
            fields=[
                _ID,
                ("at", models.DateTimeField()),
                ("route", models.CharField(max_length=80)),
                ("backend_uid", models.CharField(blank=True, max_length=32)),
                ("operation", models.CharField(max_length=20)),
                ("status", models.PositiveSmallIntegerField()),
                ("outcome", models.CharField(max_length=20)),
                ("prompt_tokens", models.PositiveIntegerField(default=0)),
                ("completion_tokens", models.PositiveIntegerField(default=0)),
                ("duration_ms", models.FloatField(default=0.0)),
                ("first_token_ms", models.FloatField(blank=True, null=True)),
                (
                    "batch",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="records", to="serving.usagebatch"
                    ),
                ),
                (
                    "key",
                    models.ForeignKey(
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="usage",
                        to="serving.apikey",
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="usage",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["key", "-at"], name="serving_usa_key_id_e1d12b_idx"),
                    models.Index(fields=["route", "-at"], name="serving_usa_route_1e5137_idx"),
                ],
                "ordering": ("-id",),
            },
        ),
    ]
