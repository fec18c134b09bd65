"""Take over the tables of metrics from ``monitoring``."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.migrations.state import StateApps

import controlplane.persistence.models

#: Lower-case names of the models that come from ``monitoring`` with their rows.
_MOVED = ("cardfigures", "cardhistory", "cardhour", "nodetoken", "source", "summedhour")
#: Of these Django creates no table.
_UNMANAGED = "cardhistory"
#: The partitioned table, its index and its partitions.
_RENAME_HISTORY = """
DO $$
DECLARE
    part record;
BEGIN
    ALTER TABLE {old}_history RENAME TO {new}_history;
    ALTER INDEX {old}_history_by_time RENAME TO {new}_history_by_time;
    FOR part IN
        SELECT child.relname AS name FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid
         WHERE inhparent = '{new}_history'::regclass
    LOOP
        EXECUTE format(
            'ALTER TABLE %I RENAME TO %I', part.name,
            replace(part.name, '{old}_history_', '{new}_history_')
        );
    END LOOP;
END $$;
"""


def _content_types_take_over(apps: StateApps, _editor: object) -> None:
    """Let permissions and entries of the admin's log follow their models."""
    types = apps.get_model("contenttypes", "ContentType").objects
    types.filter(app_label="monitoring", model__in=_MOVED).update(app_label="telemetry")


def _content_types_give_back(apps: StateApps, _editor: object) -> None:
    types = apps.get_model("contenttypes", "ContentType").objects
    types.filter(app_label="telemetry", model__in=_MOVED).update(app_label="monitoring")


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("contenttypes", "0002_remove_content_type_name"),
        ("monitoring", "0006_names_of_tables"),
        ("fleet", "0002_remote_clusters_and_node_locality"),
    ]

    operations = [
        *(
            migrations.RunSQL(
                f"ALTER TABLE monitoring_{name} RENAME TO telemetry_{name}",
                f"ALTER TABLE telemetry_{name} RENAME TO monitoring_{name}",
            )
            for name in _MOVED
            if name != _UNMANAGED
        ),
        migrations.RunSQL(
            _RENAME_HISTORY.format(old="monitoring", new="telemetry"),
            _RENAME_HISTORY.format(old="telemetry", new="monitoring"),
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="CardHistory",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "card_id",
                                "at",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("at", models.DateTimeField()),
                        ("utilization", models.FloatField(null=True)),
                        ("memory_used", models.FloatField(null=True)),
                        ("memory_total", models.FloatField(null=True)),
                        ("temperature", models.FloatField(null=True)),
                        ("memory_temperature", models.FloatField(null=True)),
                        ("power", models.FloatField(null=True)),
                        ("clock", models.FloatField(null=True)),
                        ("ecc_corrected", models.FloatField(null=True)),
                        ("ecc_uncorrected", models.FloatField(null=True)),
                        ("link_errors", models.FloatField(null=True)),
                        ("network_errors", models.FloatField(null=True)),
                        ("health", models.FloatField(null=True)),
                    ],
                    options={
                        "db_table": "telemetry_history",
                        "managed": False,
                    },
                ),
                migrations.CreateModel(
                    name="SummedHour",
                    fields=[
                        ("hour", models.DateTimeField(primary_key=True, serialize=False)),
                        ("summed_at", models.DateTimeField(blank=True, null=True)),
                    ],
                    options={
                        "ordering": ("hour",),
                    },
                ),
                migrations.CreateModel(
                    name="NodeToken",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
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
                        ("digest", models.CharField(max_length=64, unique=True)),
                        ("created_by_name", models.CharField(blank=True, max_length=150)),
                        ("used_at", models.DateTimeField(blank=True, null=True)),
                        ("revoked_at", models.DateTimeField(blank=True, null=True)),
                        ("sequence", models.BigIntegerField(default=0)),
                        (
                            "gaps",
                            models.JSONField(
                                blank=True,
                                db_default=models.Value([], models.JSONField()),
                                default=list,
                            ),
                        ),
                        ("agent", models.JSONField(blank=True, default=dict)),
                        (
                            "node",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="tokens",
                                to="fleet.node",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ("-id",),
                    },
                ),
                migrations.CreateModel(
                    name="Source",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
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
                            "leased_until",
                            models.DateTimeField(blank=True, editable=False, null=True),
                        ),
                        ("lease_token", models.BigIntegerField(default=0, editable=False)),
                        ("name", models.SlugField(max_length=60, unique=True)),
                        ("kind", models.CharField(max_length=20)),
                        ("options", models.JSONField(blank=True, default=dict)),
                        ("credential", models.BinaryField(blank=True, null=True)),
                        ("every", models.PositiveIntegerField(default=10)),
                        ("enabled", models.BooleanField(default=True)),
                        ("tried_at", models.DateTimeField(blank=True, null=True)),
                        ("read_at", models.DateTimeField(blank=True, null=True)),
                        ("trouble", models.TextField(blank=True)),
                        ("readings", models.PositiveIntegerField(default=0)),
                        ("refused", models.PositiveIntegerField(default=0)),
                        ("refusals", models.JSONField(blank=True, default=list)),
                        ("silent", models.JSONField(blank=True, default=dict)),
                        ("stalled", models.TextField(blank=True)),
                        ("created_by_name", models.CharField(blank=True, max_length=150)),
                        (
                            "cluster",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="sources",
                                to="fleet.cluster",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ("name",),
                    },
                ),
                migrations.CreateModel(
                    name="CardFigures",
                    fields=[
                        (
                            "card",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.CASCADE,
                                primary_key=True,
                                related_name="figures",
                                serialize=False,
                                to="fleet.card",
                            ),
                        ),
                        ("serial", models.CharField(blank=True, default="", max_length=80)),
                        ("at", models.DateTimeField()),
                        ("received_at", models.DateTimeField()),
                        ("utilization", models.FloatField(null=True)),
                        ("memory_used", models.FloatField(null=True)),
                        ("memory_total", models.FloatField(null=True)),
                        ("temperature", models.FloatField(null=True)),
                        ("memory_temperature", models.FloatField(null=True)),
                        ("power", models.FloatField(null=True)),
                        ("clock", models.FloatField(null=True)),
                        ("ecc_corrected", models.FloatField(null=True)),
                        ("ecc_uncorrected", models.FloatField(null=True)),
                        ("link_errors", models.FloatField(null=True)),
                        ("network_errors", models.FloatField(null=True)),
                        ("health", models.FloatField(null=True)),
                        (
                            "source",
                            models.ForeignKey(
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="figures",
                                to="telemetry.source",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name_plural": "card figures",
                    },
                ),
                migrations.CreateModel(
                    name="CardHour",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "card_id",
                                "hour",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("hour", models.DateTimeField()),
                        ("samples", models.PositiveIntegerField()),
                        ("utilization_min", models.FloatField(null=True)),
                        ("utilization_mean", models.FloatField(null=True)),
                        ("utilization_max", models.FloatField(null=True)),
                        ("memory_used_min", models.FloatField(null=True)),
                        ("memory_used_mean", models.FloatField(null=True)),
                        ("memory_used_max", models.FloatField(null=True)),
                        ("memory_total_max", models.FloatField(null=True)),
                        ("temperature_min", models.FloatField(null=True)),
                        ("temperature_mean", models.FloatField(null=True)),
                        ("temperature_max", models.FloatField(null=True)),
                        ("memory_temperature_max", models.FloatField(null=True)),
                        ("power_min", models.FloatField(null=True)),
                        ("power_mean", models.FloatField(null=True)),
                        ("power_max", models.FloatField(null=True)),
                        ("clock_min", models.FloatField(null=True)),
                        ("clock_mean", models.FloatField(null=True)),
                        ("ecc_corrected_max", models.FloatField(null=True)),
                        ("ecc_uncorrected_max", models.FloatField(null=True)),
                        ("link_errors_max", models.FloatField(null=True)),
                        ("network_errors_max", models.FloatField(null=True)),
                        ("health_min", models.FloatField(null=True)),
                        (
                            "card",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="fleet.card",
                            ),
                        ),
                    ],
                    options={
                        "indexes": [models.Index(fields=["hour"], name="card_hour_by_hour")],
                    },
                ),
            ],
        ),
        migrations.RunPython(_content_types_take_over, _content_types_give_back),
    ]
