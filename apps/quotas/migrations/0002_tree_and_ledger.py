"""The queue tree with its entitlements, what claims say of themselves, nominations, forecasts and the ledger."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import controlplane.domain.quotas.queues
import controlplane.persistence.models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0004_audit_unemptied_and_found"),
        ("fleet", "0001_initial"),
        ("quotas", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="CardRate",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("chip", models.CharField(max_length=60, unique=True)),
                ("per_hour", models.DecimalField(decimal_places=4, max_digits=12)),
            ],
            options={
                "ordering": ("chip",),
            },
        ),
        migrations.CreateModel(
            name="ClaimForecast",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("starts_at", models.DateTimeField(blank=True, null=True)),
                ("earliest", models.DateTimeField(blank=True, null=True)),
                ("latest", models.DateTimeField(blank=True, null=True)),
                ("chip", models.CharField(blank=True, max_length=60)),
                ("nodes", models.JSONField(blank=True, default=list)),
                ("waits_for", models.JSONField(blank=True, default=list)),
                ("reason", models.TextField()),
                ("made_at", models.DateTimeField()),
            ],
            options={
                "ordering": ("starts_at",),
            },
        ),
        migrations.CreateModel(
            name="Entitlement",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("chip", models.CharField(blank=True, max_length=60)),
                ("reserved", models.PositiveIntegerField(default=0)),
                ("guaranteed", models.PositiveIntegerField(default=0)),
                ("cap", models.PositiveIntegerField(blank=True, null=True)),
            ],
            options={
                "ordering": ("queue", "chip"),
            },
        ),
        migrations.CreateModel(
            name="Nomination",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("work_uid", models.CharField(blank=True, max_length=32)),
                ("until", models.DateTimeField()),
            ],
            options={
                "ordering": ("id",),
            },
        ),
        migrations.CreateModel(
            name="PriorityClass",
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
                ("name", models.SlugField(max_length=40, unique=True)),
                ("value", models.IntegerField(unique=True)),
                ("description", models.TextField(blank=True)),
            ],
            options={
                "verbose_name_plural": "priority classes",
                "ordering": ("-value",),
            },
        ),
        migrations.CreateModel(
            name="QueueChange",
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
                ("actor_name", models.CharField(max_length=150)),
                ("act", models.CharField(max_length=20)),
                ("note", models.TextField(blank=True)),
                ("before", models.JSONField()),
                ("after", models.JSONField()),
            ],
            options={
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="UsageDay",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
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
            ],
            options={
                "ordering": ("day", "id"),
            },
        ),
        migrations.CreateModel(
            name="UsageRecord",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
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
            ],
            options={
                "ordering": ("id",),
            },
        ),
        # The columns stay for the release before this one, which still writes them; a later one drops them.
        migrations.AlterField(
            model_name="queue",
            name="caps",
            field=models.JSONField(
                blank=True, db_default=models.Value({}, models.JSONField()), default=dict
            ),
        ),
        migrations.AlterField(
            model_name="queue",
            name="open",
            field=models.BooleanField(db_default=True, default=True),
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveField(model_name="queue", name="caps"),
                migrations.RemoveField(model_name="queue", name="open"),
            ]
        ),
        migrations.AddField(
            model_name="claim",
            name="in_line_since",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="claim",
            name="metered_until",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="claim",
            name="person",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="claims",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="claim",
            name="preemptible",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="claim",
            name="revoked_for",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="beneficiary_of",
                to="quotas.claim",
            ),
        ),
        migrations.AddField(
            model_name="claim",
            name="runtime",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="claim",
            name="speeds",
            field=models.JSONField(
                blank=True, db_default=models.Value({}, models.JSONField()), default=dict
            ),
        ),
        migrations.AddField(
            model_name="claim",
            name="where",
            field=models.JSONField(
                blank=True, db_default=models.Value({}, models.JSONField()), default=dict
            ),
        ),
        migrations.AddField(
            model_name="claim",
            name="work_kind",
            field=models.CharField(blank=True, db_default="", max_length=20),
        ),
        migrations.AddField(
            model_name="claim",
            name="work_name",
            field=models.CharField(blank=True, db_default="", max_length=200),
        ),
        migrations.AddField(
            model_name="claim",
            name="work_uid",
            field=models.CharField(blank=True, db_default="", max_length=32),
        ),
        migrations.AddField(
            model_name="queue",
            name="borrows",
            field=models.BooleanField(db_default=True, default=True),
        ),
        migrations.AddField(
            model_name="queue",
            name="description",
            field=models.TextField(blank=True, db_default=""),
        ),
        migrations.AddField(
            model_name="queue",
            name="lends",
            field=models.BooleanField(db_default=True, default=True),
        ),
        migrations.AddField(
            model_name="queue",
            name="preempts",
            field=models.BooleanField(db_default=True, default=True),
        ),
        migrations.AddField(
            model_name="queue",
            name="reclaims",
            field=models.BooleanField(db_default=True, default=True),
        ),
        migrations.AddField(
            model_name="queue",
            name="retired_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="queue",
            name="running_per_person",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="queue",
            name="state",
            field=models.CharField(
                choices=[("open", "open"), ("draining", "draining"), ("closed", "closed")],
                db_default=controlplane.domain.quotas.queues.QueueState["OPEN"],
                default=controlplane.domain.quotas.queues.QueueState["OPEN"],
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="weight",
            field=models.FloatField(db_default=1.0, default=1.0),
        ),
        migrations.AddIndex(
            model_name="claim",
            index=models.Index(fields=["work_uid", "-id"], name="claim_of_work"),
        ),
        migrations.AddConstraint(
            model_name="queue",
            constraint=models.CheckConstraint(
                condition=models.Q(("weight__gt", 0)), name="queue_weight_positive"
            ),
        ),
        migrations.AddField(
            model_name="claimforecast",
            name="claim",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="forecast",
                to="quotas.claim",
            ),
        ),
        migrations.AddField(
            model_name="entitlement",
            name="queue",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="entitlements",
                to="quotas.queue",
            ),
        ),
        migrations.AddField(
            model_name="nomination",
            name="card",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="nomination",
                to="fleet.card",
            ),
        ),
        migrations.AddField(
            model_name="nomination",
            name="claim",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="nominations",
                to="quotas.claim",
            ),
        ),
        migrations.AddField(
            model_name="queuechange",
            name="actor",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="queuechange",
            name="reverts",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="reverted_by",
                to="quotas.queuechange",
            ),
        ),
        migrations.AddField(
            model_name="usageday",
            name="person",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="usageday",
            name="queue",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="quotas.queue"
            ),
        ),
        migrations.AddField(
            model_name="usageday",
            name="team",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="accounts.team"
            ),
        ),
        migrations.AddField(
            model_name="usagerecord",
            name="claim",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="usage", to="quotas.claim"
            ),
        ),
        migrations.AddField(
            model_name="usagerecord",
            name="person",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="usagerecord",
            name="queue",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="quotas.queue"
            ),
        ),
        migrations.AddField(
            model_name="usagerecord",
            name="team",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="accounts.team"
            ),
        ),
        migrations.AddConstraint(
            model_name="entitlement",
            constraint=models.UniqueConstraint(
                fields=("queue", "chip"), name="entitlement_once_per_chip"
            ),
        ),
        migrations.AddConstraint(
            model_name="entitlement",
            constraint=models.CheckConstraint(
                condition=models.Q(("reserved__lte", models.F("guaranteed"))),
                name="entitlement_reserved_is_guaranteed",
            ),
        ),
        migrations.AddConstraint(
            model_name="entitlement",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("cap", None), ("guaranteed__lte", models.F("cap")), _connector="OR"
                ),
                name="entitlement_guaranteed_within_cap",
            ),
        ),
        migrations.AddConstraint(
            model_name="usageday",
            constraint=models.UniqueConstraint(
                fields=("day", "queue", "team", "person", "chip", "work_kind"),
                name="usage_day_once",
                nulls_distinct=False,
            ),
        ),
        migrations.AddIndex(
            model_name="usagerecord",
            index=models.Index(fields=["since"], name="usage_record_since"),
        ),
        migrations.AddIndex(
            model_name="usagerecord",
            index=models.Index(fields=["work_uid"], name="usage_record_work"),
        ),
        migrations.AddIndex(
            model_name="usagerecord",
            index=models.Index(fields=["recorded_at"], name="usage_record_recorded"),
        ),
        migrations.AddConstraint(
            model_name="usagerecord",
            constraint=models.UniqueConstraint(
                fields=("claim", "chip", "since"), name="usage_record_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="usagerecord",
            constraint=models.CheckConstraint(
                condition=models.Q(("until__gt", models.F("since"))), name="usage_record_lasts"
            ),
        ),
    ]
