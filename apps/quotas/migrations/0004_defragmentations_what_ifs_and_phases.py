import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import controlplane.domain.scheduling.defragmentation_runs
import controlplane.domain.scheduling.what_if
import controlplane.persistence.models


class Migration(migrations.Migration):
    replaces = [
        ("quotas", "0004_rearrangements"),
        ("quotas", "0005_what_ifs"),
        ("quotas", "0006_cycle_phases"),
        ("quotas", "0007_claims_that_hold"),
    ]

    dependencies = [
        ("accounts", "0004_audit_unemptied_and_found"),
        ("accounts", "__first__"),
        ("fleet", "0001_initial"),
        ("quotas", "0003_carry_over"),
    ]

    operations = [
        migrations.AlterField(
            model_name="claim",
            name="release_reason",
            field=models.CharField(
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
        migrations.CreateModel(
            name="Rearrangement",
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
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="rearrangements",
                        to="quotas.claim",
                    ),
                ),
                (
                    "proposed_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="RearrangementMove",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
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
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="moves",
                        to="quotas.claim",
                    ),
                ),
                (
                    "rearrangement",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="moves",
                        to="quotas.rearrangement",
                    ),
                ),
                (
                    "successor",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="quotas.claim",
                    ),
                ),
            ],
            options={
                "ordering": ("rearrangement", "number"),
            },
        ),
        migrations.CreateModel(
            name="MoveTransition",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("from_state", models.CharField(max_length=20)),
                ("event", models.CharField(max_length=20)),
                ("to_state", models.CharField(max_length=20)),
                ("reason", models.TextField(blank=True)),
                ("actor", models.CharField(blank=True, max_length=150)),
                ("at", models.DateTimeField()),
                (
                    "entity",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="transitions",
                        to="quotas.rearrangementmove",
                    ),
                ),
            ],
            options={
                "ordering": ("id",),
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="RearrangementTransition",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("from_state", models.CharField(max_length=20)),
                ("event", models.CharField(max_length=20)),
                ("to_state", models.CharField(max_length=20)),
                ("reason", models.TextField(blank=True)),
                ("actor", models.CharField(blank=True, max_length=150)),
                ("at", models.DateTimeField()),
                (
                    "entity",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="transitions",
                        to="quotas.rearrangement",
                    ),
                ),
            ],
            options={
                "ordering": ("id",),
                "abstract": False,
            },
        ),
        migrations.AddIndex(
            model_name="rearrangement",
            index=models.Index(
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
            ),
        ),
        migrations.AddConstraint(
            model_name="rearrangementmove",
            constraint=models.UniqueConstraint(
                fields=("rearrangement", "number"), name="move_once_by_number"
            ),
        ),
        migrations.CreateModel(
            name="ForecastRun",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                ("ended_at", models.DateTimeField()),
                ("waiting", models.PositiveIntegerField()),
                ("looked_at", models.PositiveIntegerField()),
                ("horizon", models.PositiveIntegerField()),
            ],
            options={
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="WhatIf",
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
            ],
            options={
                "ordering": ("-id",),
            },
        ),
        migrations.AddField(
            model_name="claimforecast",
            name="place",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddIndex(
            model_name="allocation",
            index=models.Index(fields=["released_at"], name="allocation_released"),
        ),
        migrations.AddField(
            model_name="whatif",
            name="claim",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="what_ifs",
                to="quotas.claim",
            ),
        ),
        migrations.AddField(
            model_name="whatif",
            name="person",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="what_ifs",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="whatif",
            name="queue",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="what_ifs",
                to="quotas.queue",
            ),
        ),
        migrations.AddField(
            model_name="whatif",
            name="team",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                to="accounts.team",
            ),
        ),
        migrations.CreateModel(
            name="CyclePhase",
            fields=[
                ("name", models.CharField(max_length=20, primary_key=True, serialize=False)),
                ("cycles", models.BigIntegerField(default=0)),
                ("seconds", models.FloatField(default=0.0)),
                (
                    "within",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=list, size=None
                    ),
                ),
            ],
            options={
                "ordering": ("name",),
            },
        ),
        migrations.AddIndex(
            model_name="claim",
            index=models.Index(
                condition=models.Q(("state__in", ("admitted", "revoking"))),
                fields=["id"],
                name="claim_holding",
            ),
        ),
    ]
