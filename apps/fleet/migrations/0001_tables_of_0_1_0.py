"""The tables of version 0.1.0."""

from django.db import migrations, models

from controlplane.domain.common.accelerators import CardState
from controlplane.persistence.models import new_uid

_UID_ROW = (
    (
        "id",
        models.BigAutoField(
            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
        ),
    ),
    ("uid", models.CharField(default=new_uid, editable=False, max_length=32, unique=True)),
    ("created_at", models.DateTimeField(auto_now_add=True)),
)
_REMOVED_AT = ("removed_at", models.DateTimeField(blank=True, editable=False, null=True))


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("fleet", "0001_initial"),
        ("fleet", "0002_clusters_over_the_network"),
        ("fleet", "0003_node_locality"),
    ]
    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Cluster",
            fields=[
                *_UID_ROW,
                ("name", models.SlugField(max_length=40, unique=True)),
                ("kind", models.CharField(max_length=20)),
                ("options", models.JSONField(blank=True, default=dict)),
                (
                    "binding",
                    models.CharField(
                        choices=[("card", "Card"), ("node", "Node")], default="card", max_length=4
                    ),
                ),
                ("last_seen_at", models.DateTimeField(blank=True, null=True)),
                ("trouble", models.TextField(blank=True)),
                ("isolation", models.TextField(blank=True)),
                ("checked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "checks",
                    models.JSONField(
                        blank=True, db_default=models.Value([], models.JSONField()), default=list
                    ),
                ),
                (
                    "created_by_name",
                    models.CharField(blank=True, db_default="", default="", max_length=150),
                ),
                ("kubeconfig", models.BinaryField(blank=True, null=True)),
                ("reachable_at", models.DateTimeField(blank=True, null=True)),
                _REMOVED_AT,
                ("version", models.CharField(blank=True, db_default="", default="", max_length=60)),
            ],
            options={"ordering": ("name",)},
        ),
        migrations.CreateModel(
            name="Node",
            fields=[
                *_UID_ROW,
                ("name", models.CharField(max_length=120)),
                ("cpu", models.BigIntegerField(default=0)),
                ("memory", models.BigIntegerField(default=0)),
                ("ready", models.BooleanField(default=True)),
                ("cordoned", models.BooleanField(default=False)),
                ("labels", models.JSONField(blank=True, default=dict)),
                ("last_seen_at", models.DateTimeField(blank=True, null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="nodes", to="fleet.cluster"
                    ),
                ),
                _REMOVED_AT,
                (
                    "locality",
                    models.JSONField(
                        blank=True, db_default=models.Value({}, models.JSONField()), default=dict
                    ),
                ),
            ],
            options={"ordering": ("name",)},
        ),
        migrations.CreateModel(
            name="Card",
            fields=[
                *_UID_ROW,
                ("index", models.PositiveIntegerField()),
                ("chip", models.CharField(max_length=60)),
                ("memory", models.BigIntegerField(default=0)),
                ("serial", models.CharField(blank=True, max_length=80)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("usable", "usable"),
                            ("no_new_work", "no new work"),
                            ("isolated", "isolated"),
                            ("unknown", "unknown"),
                        ],
                        default=CardState.USABLE,
                        max_length=20,
                    ),
                ),
                ("state_reason", models.TextField(blank=True)),
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="slices",
                        to="fleet.card",
                    ),
                ),
                (
                    "node",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="cards", to="fleet.node"
                    ),
                ),
                _REMOVED_AT,
            ],
            options={"ordering": ("node__name", "index")},
        ),
        migrations.AddConstraint(
            model_name="node",
            constraint=models.UniqueConstraint(
                fields=("cluster", "name"), name="node_once_in_cluster"
            ),
        ),
        migrations.AddConstraint(
            model_name="card",
            constraint=models.UniqueConstraint(
                condition=models.Q(("parent", None)),
                fields=("node", "index"),
                name="card_once_on_node",
            ),
        ),
    ]
