"""The tables of version 0.1.0."""

import django.db.models.functions.datetime
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

import controlplane.domain.quotas.claims
import controlplane.domain.quotas.queues
import controlplane.domain.scheduling.defragmentation_runs
import controlplane.domain.scheduling.what_if
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
_PERSON = (
    "person",
    models.ForeignKey(
        blank=True,
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        to=settings.AUTH_USER_MODEL,
    ),
)
_QUEUE = ("queue", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="quotas.queue"))
_TEAM = ("team", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="accounts.team"))
#: The ledger is append-only, and exact.
_TRIGGERS = """
CREATE FUNCTION quotas_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- A backup that is restored brings its own rows.
    IF TG_OP = 'TRUNCATE' AND current_setting('ninefold.audit_retention', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'a row of % is a record of what happened: it cannot be changed or deleted', TG_TABLE_NAME;
END
$$;
CREATE TRIGGER quotas_usage_append_only BEFORE UPDATE OR DELETE ON quotas_usagerecord
    FOR EACH ROW EXECUTE FUNCTION quotas_append_only();
CREATE TRIGGER quotas_usage_not_emptied BEFORE TRUNCATE ON quotas_usagerecord
    FOR EACH STATEMENT EXECUTE FUNCTION quotas_append_only();
ALTER TABLE quotas_usagerecord
    ADD CONSTRAINT usage_record_exact
        CHECK (card_microseconds = cards * extract(epoch FROM until - since) * 1000000),
    ADD CONSTRAINT usage_record_of_one_day
        CHECK (until AT TIME ZONE 'UTC' <= date_trunc('day', since AT TIME ZONE 'UTC') + interval '1 day');
"""
_NO_TRIGGERS = """
ALTER TABLE quotas_usagerecord
    DROP CONSTRAINT usage_record_exact,
    DROP CONSTRAINT usage_record_of_one_day;
DROP TRIGGER quotas_usage_append_only ON quotas_usagerecord;
DROP TRIGGER quotas_usage_not_emptied ON quotas_usagerecord;
DROP FUNCTION quotas_append_only();
"""


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("quotas", "0001_initial"),
        ("quotas", "0002_tree_and_ledger"),
        ("quotas", "0003_carry_over"),
        ("quotas", "0004_rearrangements"),
        ("quotas", "0005_what_ifs"),
        ("quotas", "0006_cycle_phases"),
        ("quotas", "0007_claims_that_hold"),
    ]
    dependencies = [
        ("accounts", "0001_tables_of_0_1_0"),
        ("fleet", "0001_tables_of_0_1_0"),
    ]

    operations = [
        migrations.CreateModel(
            name="Queue",
            fields=[
                *_UID_ROW,
                ("name", models.SlugField(max_length=60, unique=True)),
                (
                    "caps",
                    models.JSONField(
                        blank=True, db_default=models.Value({}, models.JSONField()), default=dict
                    ),
                ),
                ("open", models.BooleanField(db_default=True, default=True)),
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="children",
                        to="quotas.queue",
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="queues",
                        to="accounts.team",
                    ),
                ),
                ("borrows", models.BooleanField(db_default=True, default=True)),
                ("description", models.TextField(blank=True, db_default="")),
                ("lends", models.BooleanField(db_default=True, default=True)),
                ("preempts", models.BooleanField(db_default=True, default=True)),
                ("reclaims", models.BooleanField(db_default=True, default=True)),
                ("retired_at", models.DateTimeField(blank=True, null=True)),
                ("running_per_person", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[("open", "open"), ("draining", "draining"), ("closed", "closed")],
                        db_default=controlplane.domain.quotas.queues.QueueState["OPEN"],
                        default=controlplane.domain.quotas.queues.QueueState["OPEN"],
                        max_length=10,
                    ),
                ),
                ("weight", models.FloatField(db_default=1.0, default=1.0)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("weight__gt", 0)), name="queue_weight_positive"
                    )
                ],
                "ordering": ("name",),
            },
        ),
        migrations.CreateModel(
            name="Claim",
            fields=[
                *_UID_ROW,
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("admitted", "admitted"),
                            ("revoking", "revoking"),
                            ("released", "released"),
                        ],
                        default=controlplane.domain.quotas.claims.ClaimState["PENDING"],
                        max_length=20,
                    ),
                ),
                ("owner_kind", models.CharField(max_length=20)),
                ("owner_uid", models.CharField(max_length=32)),
                ("shape", models.JSONField()),
                ("card_count", models.PositiveIntegerField()),
                ("chips", models.JSONField()),
                ("priority", models.IntegerField(default=0)),
                ("explanation", models.TextField(blank=True)),
                ("explanation_numbers", models.JSONField(blank=True, default=dict)),
                ("chip", models.CharField(blank=True, max_length=60)),
                ("placement", models.JSONField(blank=True, default=list)),
                ("admitted_at", models.DateTimeField(blank=True, null=True)),
                ("revoke_by", models.DateTimeField(blank=True, null=True)),
                ("released_at", models.DateTimeField(blank=True, null=True)),
                (
                    "release_reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("preempted", "preempted"),
                            ("fault", "fault"),
                            ("drain", "drain"),
                            ("moved", "moved"),
                            ("cancelled", "cancelled"),
                            ("finished", "finished"),
                        ],
                        max_length=20,
                    ),
                ),
                ("checkpointed_at", models.DateTimeField(blank=True, null=True)),
                ("progress", models.FloatField(default=0.0)),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="claims", to="accounts.team"
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="claims", to="quotas.queue"
                    ),
                ),
                ("in_line_since", models.DateTimeField(blank=True, null=True)),
                ("metered_until", models.DateTimeField(blank=True, null=True)),
                (
                    "person",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="claims",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("preemptible", models.BooleanField(db_default=False, default=False)),
                (
                    "revoked_for",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="beneficiary_of",
                        to="quotas.claim",
                    ),
                ),
                ("runtime", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "speeds",
                    models.JSONField(
                        blank=True, db_default=models.Value({}, models.JSONField()), default=dict
                    ),
                ),
                (
                    "where",
                    models.JSONField(
                        blank=True, db_default=models.Value({}, models.JSONField()), default=dict
                    ),
                ),
                ("work_kind", models.CharField(blank=True, db_default="", max_length=20)),
                ("work_name", models.CharField(blank=True, db_default="", max_length=200)),
                ("work_uid", models.CharField(blank=True, db_default="", max_length=32)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("state", controlplane.domain.quotas.claims.ClaimState["RELEASED"]),
                            _negated=True,
                        ),
                        fields=("owner_kind", "owner_uid"),
                        name="claim_once_per_owner",
                    )
                ],
                "indexes": [
                    models.Index(
                        condition=models.Q(
                            ("state", controlplane.domain.quotas.claims.ClaimState["PENDING"])
                        ),
                        fields=["-priority", "id"],
                        name="claim_waiting",
                    ),
                    models.Index(fields=["work_uid", "-id"], name="claim_of_work"),
                    models.Index(
                        condition=models.Q(("state__in", ("admitted", "revoking"))),
                        fields=["id"],
                        name="claim_holding",
                    ),
                ],
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="ClaimTransition",
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
                        on_delete=models.CASCADE, related_name="transitions", to="quotas.claim"
                    ),
                ),
            ],
            options={"abstract": False, "ordering": ("id",)},
        ),
        migrations.CreateModel(
            name="Allocation",
            fields=[
                _ID,
                ("role", models.CharField(max_length=40)),
                ("replica", models.PositiveIntegerField()),
                ("allocated_at", models.DateTimeField()),
                ("released_at", models.DateTimeField(blank=True, null=True)),
                (
                    "card",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="allocations", to="fleet.card"
                    ),
                ),
                (
                    "node",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="allocations", to="fleet.node"
                    ),
                ),
                (
                    "claim",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="allocations", to="quotas.claim"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("released_at", None)),
                        fields=("card",),
                        name="allocation_card_held_once",
                    )
                ],
                "indexes": [models.Index(fields=["released_at"], name="allocation_released")],
                "ordering": ("id",),
            },
        ),
        migrations.CreateModel(
            name="CardRate",
            fields=[
                _ID,
                ("chip", models.CharField(max_length=60, unique=True)),
                ("per_hour", models.DecimalField(decimal_places=4, max_digits=12)),
            ],
            options={"ordering": ("chip",)},
        ),
        migrations.CreateModel(
            name="ClaimForecast",
            fields=[
                _ID,
                ("starts_at", models.DateTimeField(blank=True, null=True)),
                ("earliest", models.DateTimeField(blank=True, null=True)),
                ("latest", models.DateTimeField(blank=True, null=True)),
                ("chip", models.CharField(blank=True, max_length=60)),
                ("nodes", models.JSONField(blank=True, default=list)),
                ("waits_for", models.JSONField(blank=True, default=list)),
                ("reason", models.TextField()),
                ("made_at", models.DateTimeField()),
                (
                    "claim",
                    models.OneToOneField(
                        on_delete=models.CASCADE, related_name="forecast", to="quotas.claim"
                    ),
                ),
                ("place", models.PositiveIntegerField(blank=True, null=True)),
            ],
            options={"ordering": ("starts_at",)},
        ),
        migrations.CreateModel(
            name="Entitlement",
            fields=[
                _ID,
                ("chip", models.CharField(blank=True, max_length=60)),
                ("reserved", models.PositiveIntegerField(default=0)),
                ("guaranteed", models.PositiveIntegerField(default=0)),
                ("cap", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "queue",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="entitlements", to="quotas.queue"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("queue", "chip"), name="entitlement_once_per_chip"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reserved__lte", models.F("guaranteed"))),
                        name="entitlement_reserved_is_guaranteed",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("cap", None), ("guaranteed__lte", models.F("cap")), _connector="OR"
                        ),
                        name="entitlement_guaranteed_within_cap",
                    ),
                ],
                "ordering": ("queue", "chip"),
            },
        ),
        migrations.CreateModel(
            name="Nomination",
            fields=[
                _ID,
                ("work_uid", models.CharField(blank=True, max_length=32)),
                ("until", models.DateTimeField()),
                (
                    "card",
                    models.OneToOneField(
                        on_delete=models.CASCADE, related_name="nomination", to="fleet.card"
                    ),
                ),
                (
                    "claim",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="nominations",
                        to="quotas.claim",
                    ),
                ),
            ],
            options={"ordering": ("id",)},
        ),
        migrations.CreateModel(
            name="PriorityClass",
            fields=[
                *_UID_ROW,
                ("name", models.SlugField(max_length=40, unique=True)),
                ("value", models.IntegerField(unique=True)),
                ("description", models.TextField(blank=True)),
            ],
            options={"ordering": ("-value",), "verbose_name_plural": "priority classes"},
        ),
        migrations.CreateModel(
            name="QueueChange",
            fields=[
                *_UID_ROW,
                ("actor_name", models.CharField(max_length=150)),
                ("act", models.CharField(max_length=20)),
                ("note", models.TextField(blank=True)),
                ("before", models.JSONField()),
                ("after", models.JSONField()),
                (
                    "actor",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "reverts",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="reverted_by",
                        to="quotas.queuechange",
                    ),
                ),
            ],
            options={"ordering": ("-id",)},
        ),
        migrations.CreateModel(
            name="UsageDay",
            fields=[
                _ID,
                ("day", models.DateField()),
                ("chip", models.CharField(max_length=60)),
                ("work_kind", models.CharField(blank=True, max_length=20)),
                ("card_microseconds", models.BigIntegerField()),
                ("claims", models.PositiveIntegerField()),
                (
                    "rolled_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), db_index=True
                    ),
                ),
                _PERSON,
                _QUEUE,
                _TEAM,
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("day", "queue", "team", "person", "chip", "work_kind"),
                        name="usage_day_once",
                        nulls_distinct=False,
                    )
                ],
                "ordering": ("day", "id"),
            },
        ),
        migrations.CreateModel(
            name="UsageRecord",
            fields=[
                _ID,
                ("chip", models.CharField(max_length=60)),
                ("work_kind", models.CharField(blank=True, max_length=20)),
                ("work_uid", models.CharField(blank=True, max_length=32)),
                ("work_name", models.CharField(blank=True, max_length=200)),
                ("cards", models.PositiveIntegerField()),
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField()),
                ("card_microseconds", models.BigIntegerField()),
                (
                    "recorded_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "claim",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="usage", to="quotas.claim"
                    ),
                ),
                _PERSON,
                _QUEUE,
                _TEAM,
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("claim", "chip", "since"), name="usage_record_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("until__gt", models.F("since"))),
                        name="usage_record_lasts",
                    ),
                ],
                "indexes": [
                    models.Index(fields=["since"], name="usage_record_since"),
                    models.Index(fields=["work_uid"], name="usage_record_work"),
                    models.Index(fields=["recorded_at"], name="usage_record_recorded"),
                ],
                "ordering": ("id",),
            },
        ),
        migrations.CreateModel(
            name="Rearrangement",
            fields=[
                *_UID_ROW,
                (
                    "purpose",
                    models.CharField(
                        choices=[
                            ("whole_nodes", "whole_nodes"),
                            ("room_for", "room_for"),
                            ("fewer_fragments", "fewer_fragments"),
                        ],
                        max_length=20,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("proposed", "proposed"),
                            ("approved", "approved"),
                            ("under_way", "under_way"),
                            ("done", "done"),
                            ("failed", "failed"),
                            ("dismissed", "dismissed"),
                            ("expired", "expired"),
                        ],
                        default=controlplane.domain.scheduling.defragmentation_runs.DefragmentationState[
                            "PROPOSED"
                        ],
                        max_length=20,
                    ),
                ),
                ("state_reason", models.TextField(blank=True)),
                ("chip", models.CharField(blank=True, max_length=60)),
                ("reason", models.TextField()),
                ("whole_before", models.PositiveIntegerField()),
                ("whole_after", models.PositiveIntegerField()),
                ("whole_found", models.PositiveIntegerField(blank=True, null=True)),
                ("fragments_before", models.FloatField()),
                ("fragments_after", models.FloatField()),
                ("fragments_found", models.FloatField(blank=True, null=True)),
                ("cost", models.FloatField()),
                ("gain", models.FloatField()),
                ("room", models.JSONField(blank=True, default=list)),
                ("pictures", models.JSONField(blank=True, default=list)),
                ("proposed_by_name", models.CharField(max_length=150)),
                ("approved_by_name", models.CharField(blank=True, max_length=150)),
                ("expires_at", models.DateTimeField()),
                ("approved_at", models.DateTimeField(blank=True, null=True)),
                ("stop_asked_at", models.DateTimeField(blank=True, null=True)),
                ("stop_asked_by", models.CharField(blank=True, max_length=150)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "claim",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="rearrangements",
                        to="quotas.claim",
                    ),
                ),
                (
                    "proposed_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(
                            (
                                "state__in",
                                (
                                    controlplane.domain.scheduling.defragmentation_runs.DefragmentationState[
                                        "PROPOSED"
                                    ],
                                    controlplane.domain.scheduling.defragmentation_runs.DefragmentationState[
                                        "APPROVED"
                                    ],
                                    controlplane.domain.scheduling.defragmentation_runs.DefragmentationState[
                                        "UNDER_WAY"
                                    ],
                                ),
                            )
                        ),
                        fields=["id"],
                        name="rearrangement_to_do",
                    )
                ],
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="RearrangementMove",
            fields=[
                _ID,
                ("number", models.PositiveIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("planned", "planned"),
                            ("stopping", "stopping"),
                            ("landing", "landing"),
                            ("landed", "landed"),
                            ("ended", "ended"),
                            ("missed", "missed"),
                            ("dropped", "dropped"),
                        ],
                        default=controlplane.domain.scheduling.defragmentation_runs.RelocationState[
                            "PLANNED"
                        ],
                        max_length=20,
                    ),
                ),
                ("chip", models.CharField(max_length=60)),
                ("source", models.JSONField()),
                ("target", models.JSONField()),
                ("lost", models.FloatField()),
                ("cost", models.FloatField()),
                ("begun_at", models.DateTimeField(blank=True, null=True)),
                ("until", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "claim",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="moves", to="quotas.claim"
                    ),
                ),
                (
                    "rearrangement",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="moves", to="quotas.rearrangement"
                    ),
                ),
                (
                    "successor",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to="quotas.claim",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("rearrangement", "number"), name="move_once_by_number"
                    )
                ],
                "ordering": ("rearrangement", "number"),
            },
        ),
        migrations.CreateModel(
            name="MoveTransition",
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
                        to="quotas.rearrangementmove",
                    ),
                ),
            ],
            options={"abstract": False, "ordering": ("id",)},
        ),
        migrations.CreateModel(
            name="RearrangementTransition",
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
                        to="quotas.rearrangement",
                    ),
                ),
            ],
            options={"abstract": False, "ordering": ("id",)},
        ),
        migrations.CreateModel(
            name="ForecastRun",
            fields=[
                _ID,
                ("at", models.DateTimeField()),
                ("ended_at", models.DateTimeField()),
                ("waiting", models.PositiveIntegerField()),
                ("looked_at", models.PositiveIntegerField()),
                ("horizon", models.PositiveIntegerField()),
            ],
            options={"ordering": ("-id",)},
        ),
        migrations.CreateModel(
            name="WhatIf",
            fields=[
                *_UID_ROW,
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("asked", "asked"),
                            ("answered", "answered"),
                            ("refused", "refused"),
                        ],
                        default=controlplane.domain.scheduling.what_if.WhatIfState["ASKED"],
                        max_length=10,
                    ),
                ),
                ("changes", models.JSONField()),
                ("answer", models.JSONField(blank=True, default=dict)),
                ("refusal", models.TextField(blank=True)),
                ("answered_at", models.DateTimeField(blank=True, null=True)),
                (
                    "claim",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="what_ifs",
                        to="quotas.claim",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=models.CASCADE,
                        related_name="what_ifs",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="what_ifs", to="quotas.queue"
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=models.CASCADE, to="accounts.team"
                    ),
                ),
            ],
            options={"ordering": ("-id",)},
        ),
        migrations.CreateModel(
            name="CyclePhase",
            fields=[
                ("name", models.CharField(max_length=20, primary_key=True, serialize=False)),
                ("cycles", models.BigIntegerField(default=0)),
                ("seconds", models.FloatField(default=0.0)),
                (
                    "within",
                    ArrayField(base_field=models.BigIntegerField(), default=list, size=None),
                ),
            ],
            options={"ordering": ("name",)},
        ),
        # The columns stay, as version 0.1.0 has them.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveField(model_name="queue", name="caps"),
                migrations.RemoveField(model_name="queue", name="open"),
            ]
        ),
        migrations.RunSQL(_TRIGGERS, _NO_TRIGGERS),
    ]
