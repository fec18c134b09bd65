"""The tables of version 0.1.0, some of which ``telemetry`` and ``notifications`` take over."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

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
_NOTIFICATION_KINDS = (
    "job.succeeded",
    "job.failed",
    "job.cancelled",
    "pipeline.succeeded",
    "pipeline.held",
    "pipeline.failed",
    "pipeline.cancelled",
    "deployment.ready",
    "deployment.troubled",
    "deployment.recovered",
    "model.imported",
    "model.refused",
    "card.isolated",
    "card.unproved",
    "card.returned",
    "health.held_back",
    "webhook.given_up",
    "webhook.disabled",
    "test",
)
_METRIC_COLUMNS = tuple(
    (name, models.FloatField(null=True))
    for name in (
        "utilization",
        "memory_used",
        "memory_total",
        "temperature",
        "memory_temperature",
        "power",
        "clock",
        "ecc_corrected",
        "ecc_uncorrected",
        "link_errors",
        "network_errors",
        "health",
    )
)
_LEVELS = [(1, "L1"), (2, "L2"), (3, "L3"), (4, "L4"), (5, "L5"), (6, "L6")]

#: The history of metrics, a partition for each day.
_HISTORY = """
CREATE TABLE monitoring_history (
    card_id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    memory_used double precision,
    memory_total double precision,
    ecc_corrected double precision,
    ecc_uncorrected double precision,
    link_errors double precision,
    network_errors double precision,
    utilization real,
    temperature real,
    memory_temperature real,
    power real,
    clock real,
    health real,
    PRIMARY KEY (card_id, at)
) PARTITION BY RANGE (at);
CREATE INDEX monitoring_history_by_time ON monitoring_history USING brin (at);
"""
# From yesterday to the day after tomorrow; a controller goes on from there.
_PARTITIONS = """
DO $$
DECLARE
    day date;
BEGIN
    FOR offset_days IN -1..2 LOOP
        day := (now() AT TIME ZONE 'UTC')::date + offset_days;
        EXECUTE format(
            'CREATE TABLE %I PARTITION OF monitoring_history FOR VALUES FROM (%L) TO (%L)',
            'monitoring_history_' || to_char(day, 'YYYYMMDD'),
            day || ' 00:00:00+00',
            (day + 1) || ' 00:00:00+00'
        );
    END LOOP;
END $$;
"""
# Each row is written anew every few seconds and no indexed column changes: with room on its page the new version
# stays there (HOT), and dead versions are cleaned up in passing.
_FILL_FACTOR = """
ALTER TABLE monitoring_cardfigures SET (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0.5, autovacuum_vacuum_cost_delay = 0
);
"""


def _foreign_key(
    to: str, related_name: str = "+", *, on_delete: Any = models.CASCADE, **options: Any
) -> models.ForeignKey[Any, Any]:
    return models.ForeignKey(to, on_delete, related_name=related_name, **options)


def _code_field(*codes: str, max_length: int, **options: Any) -> models.CharField[Any, Any]:
    choices = [(code, code) for code in codes]
    return models.CharField(choices=choices, max_length=max_length, **options)


class Migration(migrations.Migration):
    replaces = [
        ("monitoring", "0001_initial"),
        ("monitoring", "0002_pipeline_news"),
        ("monitoring", "0003_fleet_health"),
        ("monitoring", "0004_history"),
        ("monitoring", "0005_gaps"),
        ("monitoring", "0006_names_of_tables"),
    ]

    initial = True

    dependencies = [
        ("accounts", "0003_append_only_and_staff"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("fleet", "0001_tables_of_0_1_0"),
    ]

    operations = [
        migrations.CreateModel(
            name="Event",
            fields=[
                *_UID_ROW,
                ("kind", _code_field(*_NOTIFICATION_KINDS, max_length=40)),
                (
                    "subject_kind",
                    _code_field(
                        "job",
                        "pipeline",
                        "deployment",
                        "model_version",
                        "card",
                        "node",
                        "cluster",
                        "webhook",
                        "person",
                        max_length=20,
                    ),
                ),
                ("subject_uid", models.CharField(max_length=32)),
                ("subject_name", models.CharField(max_length=200)),
                ("payload", models.JSONField(blank=True, default=dict)),
                ("at", models.DateTimeField()),
                ("team", _foreign_key("accounts.team", null=True)),
            ],
            options={
                "ordering": ("-id",),
                "indexes": [models.Index(fields=["subject_uid", "-id"], name="event_by_subject")],
            },
        ),
        migrations.CreateModel(
            name="Notification",
            fields=[
                *_UID_ROW,
                ("kind", _code_field(*_NOTIFICATION_KINDS, max_length=40)),
                ("severity", _code_field("good", "info", "bad", max_length=10)),
                ("collapse_key", models.CharField(max_length=80)),
                ("count", models.PositiveIntegerField(default=1)),
                ("first_at", models.DateTimeField()),
                ("at", models.DateTimeField()),
                ("on_page", models.BooleanField(default=True)),
                ("read_at", models.DateTimeField(blank=True, null=True)),
                ("event", _foreign_key("monitoring.event", "notifications")),
                ("recipient", _foreign_key(settings.AUTH_USER_MODEL, "notifications")),
            ],
            options={
                "ordering": ("-at", "-id"),
                "indexes": [
                    models.Index(fields=["recipient", "-at", "-id"], name="notification_newest"),
                    models.Index(
                        condition=models.Q(("on_page", True), ("read_at", None)),
                        fields=["recipient"],
                        name="notification_unread",
                    ),
                    models.Index(
                        fields=["recipient", "collapse_key"], name="notification_collapse"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Mail",
            fields=[
                *_UID_ROW,
                (
                    "state",
                    _code_field("waiting", "arrived", "given_up", default="waiting", max_length=20),
                ),
                ("tries", models.PositiveIntegerField(default=0)),
                ("next_try_at", models.DateTimeField()),
                ("error", models.TextField(blank=True)),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                ("message_id", models.CharField(blank=True, max_length=200)),
                ("recipient", _foreign_key(settings.AUTH_USER_MODEL)),
                ("notification", _foreign_key("monitoring.notification", "mails")),
            ],
            options={
                "ordering": ("-id",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "waiting")),
                        fields=["next_try_at"],
                        name="mail_due",
                    ),
                    models.Index(fields=["recipient", "-sent_at"], name="mail_by_recipient"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "waiting")),
                        fields=("notification",),
                        name="mail_one_waiting",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="NotificationPreference",
            fields=[
                _ID,
                ("kind", _code_field(*_NOTIFICATION_KINDS, max_length=40)),
                ("page", models.BooleanField(default=True)),
                ("email", models.BooleanField(default=False)),
                ("whole_team", models.BooleanField(default=False)),
                ("user", _foreign_key(settings.AUTH_USER_MODEL)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "kind"), name="preference_once_per_kind"
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="Webhook",
            fields=[
                *_UID_ROW,
                ("name", models.CharField(max_length=80)),
                ("url", models.CharField(max_length=2000)),
                ("kinds", models.JSONField()),
                ("secret", models.BinaryField()),
                ("active", models.BooleanField(default=True)),
                ("given_up", models.PositiveIntegerField(default=0)),
                ("trouble", models.TextField(blank=True)),
                ("tried_at", models.DateTimeField(blank=True, null=True)),
                ("last_status", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("last_error", models.TextField(blank=True)),
                (
                    "created_by",
                    _foreign_key(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True),
                ),
                ("team", _foreign_key("accounts.team", "webhooks")),
            ],
            options={
                "ordering": ("-id",),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("team", "name"), name="webhook_name_once_in_team"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="WebhookDelivery",
            fields=[
                *_UID_ROW,
                (
                    "state",
                    _code_field("waiting", "arrived", "given_up", default="waiting", max_length=20),
                ),
                ("tries", models.PositiveIntegerField(default=0)),
                ("next_try_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("event", _foreign_key("monitoring.event")),
                ("webhook", _foreign_key("monitoring.webhook", "deliveries")),
            ],
            options={
                "ordering": ("-id",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "waiting")),
                        fields=["next_try_at"],
                        name="delivery_due",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("webhook", "event"), name="delivery_once_per_event"
                    )
                ],
                "verbose_name_plural": "webhook deliveries",
            },
        ),
        migrations.CreateModel(
            name="WebhookTry",
            fields=[
                _ID,
                ("at", models.DateTimeField()),
                ("status", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("seconds", models.FloatField()),
                ("error", models.TextField(blank=True)),
                ("answer", models.TextField(blank=True)),
                ("delivery", _foreign_key("monitoring.webhookdelivery", "history")),
            ],
            options={"verbose_name_plural": "webhook tries", "ordering": ("id",)},
        ),
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
                *_METRIC_COLUMNS,
            ],
            options={"db_table": "monitoring_history", "managed": False},
        ),
        migrations.CreateModel(
            name="AlertReceiver",
            fields=[
                *_UID_ROW,
                ("name", models.CharField(max_length=80, unique=True)),
                (
                    "kind",
                    _code_field("webhook", "email", "feishu", "dingtalk", "slack", max_length=20),
                ),
                ("url", models.BinaryField(blank=True, null=True)),
                ("secret", models.BinaryField(blank=True, null=True)),
                ("addresses", models.JSONField(blank=True, default=list)),
                ("language", models.CharField(blank=True, max_length=10)),
                ("active", models.BooleanField(default=True)),
                ("made_by_name", models.CharField(blank=True, max_length=150)),
                ("tried_at", models.DateTimeField(blank=True, null=True)),
                ("last_error", models.TextField(blank=True)),
            ],
            options={"ordering": ("name",)},
        ),
        migrations.CreateModel(
            name="AlertRule",
            fields=[
                *_UID_ROW,
                ("name", models.SlugField(max_length=60, unique=True)),
                ("title", models.CharField(max_length=120)),
                ("severity", _code_field("info", "warning", "critical", max_length=10)),
                ("enabled", models.BooleanField(default=True)),
                ("document", models.JSONField()),
                ("shipped", models.BooleanField(default=False)),
                ("changed_by_name", models.CharField(blank=True, max_length=150)),
                ("changed_at", models.DateTimeField()),
                ("evaluated_at", models.DateTimeField(blank=True, null=True)),
                ("trouble", models.TextField(blank=True)),
            ],
            options={"ordering": ("name",)},
        ),
        migrations.CreateModel(
            name="AlertGroup",
            fields=[
                *_UID_ROW,
                ("rule_name", models.CharField(max_length=60)),
                ("title", models.CharField(max_length=120)),
                ("severity", _code_field("info", "warning", "critical", max_length=10)),
                ("labels", models.JSONField(blank=True, default=dict)),
                ("key", models.CharField(max_length=64)),
                ("began_at", models.DateTimeField()),
                ("told_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("count", models.PositiveIntegerField(default=0)),
                ("most", models.PositiveIntegerField(default=0)),
                ("silenced", models.PositiveIntegerField(default=0)),
                (
                    "rule",
                    _foreign_key(
                        "monitoring.alertrule", "groups", on_delete=models.SET_NULL, null=True
                    ),
                ),
            ],
            options={
                "ordering": ("-id",),
                "indexes": [
                    models.Index(fields=["ended_at", "-began_at"], name="alert_group_by_end")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("rule", "key"),
                        name="alert_group_open_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SummedHour",
            fields=[
                ("hour", models.DateTimeField(primary_key=True, serialize=False)),
                ("summed_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={"ordering": ("hour",)},
        ),
        migrations.CreateModel(
            name="AlertNotice",
            fields=[
                *_UID_ROW,
                ("number", models.PositiveIntegerField(default=1)),
                (
                    "kind",
                    _code_field("firing", "more", "repeat", "resolved", "test", max_length=10),
                ),
                ("content", models.JSONField(default=dict)),
                ("at", models.DateTimeField()),
                ("group", _foreign_key("monitoring.alertgroup", "notices", null=True)),
            ],
            options={
                "ordering": ("-id",),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("group", "number"), name="alert_notice_numbered"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("kind__in", ("firing", "resolved"))),
                        fields=("group", "kind"),
                        name="alert_notice_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AlertDelivery",
            fields=[
                *_UID_ROW,
                (
                    "state",
                    _code_field("waiting", "arrived", "given_up", default="waiting", max_length=20),
                ),
                ("tries", models.PositiveIntegerField(default=0)),
                ("next_try_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("status", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("error", models.TextField(blank=True)),
                ("notice", _foreign_key("monitoring.alertnotice", "deliveries")),
                ("receiver", _foreign_key("monitoring.alertreceiver", "deliveries")),
            ],
            options={
                "verbose_name_plural": "alert deliveries",
                "ordering": ("-id",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "waiting")),
                        fields=["next_try_at"],
                        name="alert_delivery_due",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("receiver", "notice"), name="alert_delivery_once_per_notice"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AlertRoute",
            fields=[
                *_UID_ROW,
                ("name", models.CharField(max_length=80, unique=True)),
                (
                    "severity",
                    _code_field("info", "warning", "critical", default="warning", max_length=10),
                ),
                ("matchers", models.JSONField(blank=True, default=list)),
                ("enabled", models.BooleanField(default=True)),
                (
                    "receivers",
                    models.ManyToManyField(related_name="routes", to="monitoring.alertreceiver"),
                ),
            ],
            options={"ordering": ("name",)},
        ),
        migrations.CreateModel(
            name="Alert",
            fields=[
                *_UID_ROW,
                (
                    "state",
                    _code_field("pending", "firing", "resolved", default="pending", max_length=10),
                ),
                ("labels", models.JSONField(blank=True, default=dict)),
                ("key", models.CharField(max_length=64)),
                ("value", models.FloatField(blank=True, null=True)),
                ("href", models.CharField(blank=True, max_length=300)),
                ("began_at", models.DateTimeField()),
                ("held_at", models.DateTimeField()),
                ("fired_at", models.DateTimeField(blank=True, null=True)),
                ("quiet_since", models.DateTimeField(blank=True, null=True)),
                ("resolved_at", models.DateTimeField(blank=True, null=True)),
                ("told_at", models.DateTimeField(blank=True, null=True)),
                ("group", _foreign_key("monitoring.alertgroup", "alerts", null=True)),
                (
                    "rule",
                    _foreign_key(
                        "monitoring.alertrule", "alerts", on_delete=models.SET_NULL, null=True
                    ),
                ),
            ],
            options={
                "ordering": ("-id",),
                "indexes": [models.Index(fields=["group", "state", "id"], name="alert_by_group")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "resolved"), _negated=True),
                        fields=("rule", "key"),
                        name="alert_stands_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AlertSilence",
            fields=[
                *_UID_ROW,
                ("matchers", models.JSONField()),
                ("reason", models.CharField(max_length=300)),
                ("began_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField()),
                ("made_by_name", models.CharField(max_length=150)),
                ("ended_by_name", models.CharField(blank=True, max_length=150)),
            ],
            options={
                "ordering": ("-id",),
                "indexes": [models.Index(fields=["ends_at"], name="alert_silence_by_end")],
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
                    _foreign_key(
                        "fleet.card",
                        on_delete=models.DO_NOTHING,
                        db_constraint=False,
                        db_index=False,
                    ),
                ),
            ],
            options={"indexes": [models.Index(fields=["hour"], name="card_hour_by_hour")]},
        ),
        migrations.CreateModel(
            name="Fault",
            fields=[
                *_UID_ROW,
                (
                    "origin",
                    _code_field(
                        "exporter",
                        "agent",
                        "condition",
                        "event",
                        "mindcluster",
                        "nvsentinel",
                        "job",
                        "rule",
                        "silence",
                        "person",
                        max_length=20,
                    ),
                ),
                ("code", models.CharField(max_length=120)),
                ("vendor", models.CharField(blank=True, max_length=40)),
                ("level", models.PositiveSmallIntegerField(choices=_LEVELS)),
                ("message", models.TextField(blank=True)),
                ("began_at", models.DateTimeField()),
                ("told_at", models.DateTimeField()),
                ("noticed_at", models.DateTimeField()),
                ("count", models.PositiveIntegerField(default=1)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("acknowledged_at", models.DateTimeField(blank=True, null=True)),
                ("acknowledged_by_name", models.CharField(blank=True, max_length=150)),
                ("note", models.TextField(blank=True)),
                ("card", _foreign_key("fleet.card", "faults", null=True)),
                ("node", _foreign_key("fleet.node", "faults")),
            ],
            options={
                "ordering": ("-id",),
                "indexes": [
                    models.Index(fields=["card", "-began_at"], name="fault_by_card"),
                    models.Index(fields=["node", "-began_at"], name="fault_by_node"),
                    models.Index(
                        condition=models.Q(("ended_at", None)),
                        fields=["-level", "-id"],
                        name="fault_standing",
                    ),
                    models.Index(
                        condition=models.Q(("ended_at__isnull", False)),
                        fields=["ended_at"],
                        name="fault_by_end",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("node", "card", "origin", "code"),
                        name="fault_stands_once",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Decision",
            fields=[
                *_UID_ROW,
                (
                    "action",
                    models.CharField(
                        choices=[
                            ("note", "note"),
                            ("restart_request", "restart request"),
                            ("restart_job", "restart job"),
                            ("reset_when_idle", "reset when idle"),
                            ("reset_now", "reset now"),
                            ("isolate_card", "isolate card"),
                            ("isolate_node", "isolate node"),
                            ("release", "release"),
                        ],
                        max_length=30,
                    ),
                ),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("done", "Done"),
                            ("held_back", "Held Back"),
                            ("followed", "Followed"),
                            ("overtaken", "Overtaken"),
                        ],
                        max_length=20,
                    ),
                ),
                ("reason", models.TextField()),
                ("actor_name", models.CharField(blank=True, max_length=150)),
                ("at", models.DateTimeField()),
                ("card", _foreign_key("fleet.card", "decisions", null=True)),
                ("node", _foreign_key("fleet.node", "decisions")),
                ("fault", _foreign_key("monitoring.fault", "decisions", null=True)),
            ],
            options={
                "ordering": ("-id",),
                "indexes": [
                    models.Index(fields=["at"], name="decision_by_time"),
                    models.Index(fields=["card", "-at"], name="decision_by_card"),
                ],
            },
        ),
        migrations.CreateModel(
            name="HealthPolicy",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False),
                ),
                ("automatic", models.BooleanField(default=True)),
                ("settings", models.JSONField(blank=True, default=dict)),
                ("seeded_at", models.DateTimeField(blank=True, null=True)),
                ("changed_at", models.DateTimeField()),
                (
                    "changed_by",
                    _foreign_key(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True),
                ),
            ],
            options={
                "verbose_name_plural": "health policies",
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="one_health_policy")
                ],
            },
        ),
        migrations.CreateModel(
            name="HealthRule",
            fields=[
                *_UID_ROW,
                ("name", models.SlugField(max_length=60, unique=True)),
                ("title", models.CharField(max_length=120)),
                ("enabled", models.BooleanField(default=True)),
                ("condition", models.JSONField()),
                ("level", models.PositiveSmallIntegerField(choices=_LEVELS)),
                ("changed_at", models.DateTimeField()),
                (
                    "changed_by",
                    _foreign_key(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True),
                ),
            ],
            options={"ordering": ("name",)},
        ),
        migrations.CreateModel(
            name="Isolation",
            fields=[
                *_UID_ROW,
                ("leased_until", models.DateTimeField(blank=True, editable=False, null=True)),
                ("lease_token", models.BigIntegerField(default=0, editable=False)),
                (
                    "state",
                    _code_field(
                        "draining",
                        "empty",
                        "testing",
                        "returned",
                        default="draining",
                        max_length=20,
                    ),
                ),
                ("reason", models.TextField()),
                ("actor_name", models.CharField(blank=True, max_length=150)),
                ("began_at", models.DateTimeField()),
                ("drained_at", models.DateTimeField(blank=True, null=True)),
                ("marked_node", models.BooleanField(default=False)),
                ("cordoned_node", models.BooleanField(default=False)),
                ("burn_ins", models.PositiveIntegerField(default=0)),
                ("evidence", models.JSONField(blank=True, default=dict)),
                ("test_asked_at", models.DateTimeField(blank=True, null=True)),
                ("tested_at", models.DateTimeField(blank=True, null=True)),
                ("proved_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("card", _foreign_key("fleet.card", "isolations", null=True)),
                ("fault", _foreign_key("monitoring.fault", on_delete=models.SET_NULL, null=True)),
                ("node", _foreign_key("fleet.node", "isolations")),
            ],
            options={
                "ordering": ("-id",),
                "indexes": [
                    models.Index(fields=["began_at"], name="isolation_by_time"),
                    models.Index(fields=["card", "-began_at"], name="isolation_by_card"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("node", "card"),
                        name="isolation_stands_once",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="IsolationTransition",
            fields=[
                _ID,
                ("from_state", models.CharField(max_length=20)),
                ("event", models.CharField(max_length=20)),
                ("to_state", models.CharField(max_length=20)),
                ("reason", models.TextField(blank=True)),
                ("actor", models.CharField(blank=True, max_length=150)),
                ("at", models.DateTimeField()),
                ("isolation", _foreign_key("monitoring.isolation", "history")),
            ],
            options={"ordering": ("id",), "abstract": False},
        ),
        migrations.CreateModel(
            name="NodeToken",
            fields=[
                *_UID_ROW,
                ("digest", models.CharField(max_length=64, unique=True)),
                ("created_by_name", models.CharField(blank=True, max_length=150)),
                ("used_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("sequence", models.BigIntegerField(default=0)),
                ("agent", models.JSONField(blank=True, default=dict)),
                ("node", _foreign_key("fleet.node", "tokens")),
                (
                    "gaps",
                    models.JSONField(
                        blank=True, db_default=models.Value([], models.JSONField()), default=list
                    ),
                ),
            ],
            options={"ordering": ("-id",)},
        ),
        migrations.CreateModel(
            name="Rollout",
            fields=[
                *_UID_ROW,
                ("name", models.CharField(max_length=120)),
                (
                    "state",
                    _code_field(
                        "running",
                        "paused",
                        "done",
                        "failed",
                        "cancelled",
                        default="running",
                        max_length=10,
                    ),
                ),
                (
                    "argv",
                    ArrayField(
                        base_field=models.CharField(max_length=1000),
                        blank=True,
                        default=list,
                        size=None,
                    ),
                ),
                ("image", models.CharField(blank=True, max_length=300)),
                ("run_within", models.PositiveIntegerField(default=600)),
                ("burn_in", models.BooleanField(default=True)),
                ("parallel", models.PositiveSmallIntegerField(default=1)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("trouble", models.TextField(blank=True)),
                ("cluster", _foreign_key("fleet.cluster", "rollouts")),
                ("made_by", _foreign_key(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)),
            ],
            options={"ordering": ("-id",)},
        ),
        migrations.CreateModel(
            name="RolloutNode",
            fields=[
                *_UID_ROW,
                ("domain", models.CharField(max_length=120)),
                (
                    "state",
                    _code_field(
                        "waiting",
                        "draining",
                        "at_work",
                        "testing",
                        "done",
                        "failed",
                        "skipped",
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("burn_ins_before", models.PositiveIntegerField(default=0)),
                ("launched_at", models.DateTimeField(blank=True, null=True)),
                ("launch_there", models.BooleanField(default=False)),
                ("exit_code", models.IntegerField(blank=True, null=True)),
                ("log_tail", models.TextField(blank=True)),
                ("reason", models.TextField(blank=True)),
                ("began_at", models.DateTimeField(blank=True, null=True)),
                ("changed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "isolation",
                    _foreign_key("monitoring.isolation", on_delete=models.SET_NULL, null=True),
                ),
                ("node", _foreign_key("fleet.node")),
                ("rollout", _foreign_key("monitoring.rollout", "nodes")),
            ],
            options={
                "ordering": ("id",),
                "constraints": [
                    models.UniqueConstraint(fields=("rollout", "node"), name="rollout_node_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Source",
            fields=[
                *_UID_ROW,
                ("leased_until", models.DateTimeField(blank=True, editable=False, null=True)),
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
                ("cluster", _foreign_key("fleet.cluster", "sources")),
            ],
            options={"ordering": ("name",)},
        ),
        migrations.CreateModel(
            name="CardFigures",
            fields=[
                (
                    "card",
                    models.OneToOneField(
                        on_delete=models.CASCADE,
                        primary_key=True,
                        related_name="figures",
                        serialize=False,
                        to="fleet.card",
                    ),
                ),
                ("serial", models.CharField(blank=True, default="", max_length=80)),
                ("at", models.DateTimeField()),
                ("received_at", models.DateTimeField()),
                *_METRIC_COLUMNS,
                (
                    "source",
                    _foreign_key(
                        "monitoring.source",
                        "figures",
                        on_delete=models.SET_NULL,
                        db_index=False,
                        null=True,
                    ),
                ),
            ],
            options={"verbose_name_plural": "card figures"},
        ),
        migrations.RunSQL(_HISTORY, "DROP TABLE monitoring_history;"),
        migrations.RunSQL(_PARTITIONS, migrations.RunSQL.noop),
        migrations.RunSQL(_FILL_FACTOR, migrations.RunSQL.noop),
    ]
