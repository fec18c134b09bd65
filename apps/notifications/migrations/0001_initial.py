"""Take over the tables of notifications from ``monitoring``."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.migrations.state import StateApps

import controlplane.domain.alerts.deliveries
import controlplane.persistence.models

#: Lower-case names of the models that come from ``monitoring`` with their rows.
_MOVED = (
    "event",
    "mail",
    "notification",
    "notificationpreference",
    "webhook",
    "webhookdelivery",
    "webhooktry",
)


def _content_types_take_over(apps: StateApps, _editor: object) -> None:
    """Let permissions and entries of the admin's log follow their models."""
    types = apps.get_model("contenttypes", "ContentType").objects
    types.filter(app_label="monitoring", model__in=_MOVED).update(app_label="notifications")


def _content_types_give_back(apps: StateApps, _editor: object) -> None:
    types = apps.get_model("contenttypes", "ContentType").objects
    types.filter(app_label="notifications", model__in=_MOVED).update(app_label="monitoring")


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("contenttypes", "0002_remove_content_type_name"),
        ("monitoring", "0006_names_of_tables"),
        ("accounts", "0005_company_roles"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        *(
            migrations.RunSQL(
                f"ALTER TABLE monitoring_{name} RENAME TO notifications_{name}",
                f"ALTER TABLE notifications_{name} RENAME TO monitoring_{name}",
            )
            for name in _MOVED
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="Event",
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
                            "kind",
                            models.CharField(
                                choices=[
                                    ("job.succeeded", "job.succeeded"),
                                    ("job.failed", "job.failed"),
                                    ("job.cancelled", "job.cancelled"),
                                    ("pipeline.succeeded", "pipeline.succeeded"),
                                    ("pipeline.held", "pipeline.held"),
                                    ("pipeline.failed", "pipeline.failed"),
                                    ("pipeline.cancelled", "pipeline.cancelled"),
                                    ("deployment.ready", "deployment.ready"),
                                    ("deployment.troubled", "deployment.troubled"),
                                    ("deployment.recovered", "deployment.recovered"),
                                    ("model.imported", "model.imported"),
                                    ("model.refused", "model.refused"),
                                    ("card.isolated", "card.isolated"),
                                    ("card.unproved", "card.unproved"),
                                    ("card.returned", "card.returned"),
                                    ("health.held_back", "health.held_back"),
                                    ("webhook.given_up", "webhook.given_up"),
                                    ("webhook.disabled", "webhook.disabled"),
                                    ("test", "test"),
                                ],
                                max_length=40,
                            ),
                        ),
                        (
                            "subject_kind",
                            models.CharField(
                                choices=[
                                    ("job", "job"),
                                    ("pipeline", "pipeline"),
                                    ("deployment", "deployment"),
                                    ("model_version", "model_version"),
                                    ("card", "card"),
                                    ("node", "node"),
                                    ("cluster", "cluster"),
                                    ("webhook", "webhook"),
                                    ("person", "person"),
                                ],
                                max_length=20,
                            ),
                        ),
                        ("subject_uid", models.CharField(max_length=32)),
                        ("subject_name", models.CharField(max_length=200)),
                        ("payload", models.JSONField(blank=True, default=dict)),
                        ("at", models.DateTimeField()),
                        (
                            "team",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="accounts.team",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ("-id",),
                    },
                ),
                migrations.CreateModel(
                    name="Notification",
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
                            "kind",
                            models.CharField(
                                choices=[
                                    ("job.succeeded", "job.succeeded"),
                                    ("job.failed", "job.failed"),
                                    ("job.cancelled", "job.cancelled"),
                                    ("pipeline.succeeded", "pipeline.succeeded"),
                                    ("pipeline.held", "pipeline.held"),
                                    ("pipeline.failed", "pipeline.failed"),
                                    ("pipeline.cancelled", "pipeline.cancelled"),
                                    ("deployment.ready", "deployment.ready"),
                                    ("deployment.troubled", "deployment.troubled"),
                                    ("deployment.recovered", "deployment.recovered"),
                                    ("model.imported", "model.imported"),
                                    ("model.refused", "model.refused"),
                                    ("card.isolated", "card.isolated"),
                                    ("card.unproved", "card.unproved"),
                                    ("card.returned", "card.returned"),
                                    ("health.held_back", "health.held_back"),
                                    ("webhook.given_up", "webhook.given_up"),
                                    ("webhook.disabled", "webhook.disabled"),
                                    ("test", "test"),
                                ],
                                max_length=40,
                            ),
                        ),
                        (
                            "severity",
                            models.CharField(
                                choices=[("good", "good"), ("info", "info"), ("bad", "bad")],
                                max_length=10,
                            ),
                        ),
                        ("collapse_key", models.CharField(max_length=80)),
                        ("count", models.PositiveIntegerField(default=1)),
                        ("first_at", models.DateTimeField()),
                        ("at", models.DateTimeField()),
                        ("on_page", models.BooleanField(default=True)),
                        ("read_at", models.DateTimeField(blank=True, null=True)),
                        (
                            "event",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="notifications",
                                to="notifications.event",
                            ),
                        ),
                        (
                            "recipient",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="notifications",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                    options={
                        "ordering": ("-at", "-id"),
                    },
                ),
                migrations.CreateModel(
                    name="Mail",
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
                            "state",
                            models.CharField(
                                choices=[
                                    ("waiting", "waiting"),
                                    ("arrived", "arrived"),
                                    ("given_up", "given_up"),
                                ],
                                default=controlplane.domain.alerts.deliveries.DeliveryState[
                                    "WAITING"
                                ],
                                max_length=20,
                            ),
                        ),
                        ("tries", models.PositiveIntegerField(default=0)),
                        ("next_try_at", models.DateTimeField()),
                        ("error", models.TextField(blank=True)),
                        ("sent_at", models.DateTimeField(blank=True, null=True)),
                        ("message_id", models.CharField(blank=True, max_length=200)),
                        (
                            "recipient",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "notification",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="mails",
                                to="notifications.notification",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ("-id",),
                    },
                ),
                migrations.CreateModel(
                    name="NotificationPreference",
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
                            "kind",
                            models.CharField(
                                choices=[
                                    ("job.succeeded", "job.succeeded"),
                                    ("job.failed", "job.failed"),
                                    ("job.cancelled", "job.cancelled"),
                                    ("pipeline.succeeded", "pipeline.succeeded"),
                                    ("pipeline.held", "pipeline.held"),
                                    ("pipeline.failed", "pipeline.failed"),
                                    ("pipeline.cancelled", "pipeline.cancelled"),
                                    ("deployment.ready", "deployment.ready"),
                                    ("deployment.troubled", "deployment.troubled"),
                                    ("deployment.recovered", "deployment.recovered"),
                                    ("model.imported", "model.imported"),
                                    ("model.refused", "model.refused"),
                                    ("card.isolated", "card.isolated"),
                                    ("card.unproved", "card.unproved"),
                                    ("card.returned", "card.returned"),
                                    ("health.held_back", "health.held_back"),
                                    ("webhook.given_up", "webhook.given_up"),
                                    ("webhook.disabled", "webhook.disabled"),
                                    ("test", "test"),
                                ],
                                max_length=40,
                            ),
                        ),
                        ("page", models.BooleanField(default=True)),
                        ("email", models.BooleanField(default=False)),
                        ("whole_team", models.BooleanField(default=False)),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                ),
                migrations.CreateModel(
                    name="Webhook",
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
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "team",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="webhooks",
                                to="accounts.team",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ("-id",),
                    },
                ),
                migrations.CreateModel(
                    name="WebhookDelivery",
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
                            "state",
                            models.CharField(
                                choices=[
                                    ("waiting", "waiting"),
                                    ("arrived", "arrived"),
                                    ("given_up", "given_up"),
                                ],
                                default=controlplane.domain.alerts.deliveries.DeliveryState[
                                    "WAITING"
                                ],
                                max_length=20,
                            ),
                        ),
                        ("tries", models.PositiveIntegerField(default=0)),
                        ("next_try_at", models.DateTimeField()),
                        ("ended_at", models.DateTimeField(blank=True, null=True)),
                        (
                            "event",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="notifications.event",
                            ),
                        ),
                        (
                            "webhook",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="deliveries",
                                to="notifications.webhook",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name_plural": "webhook deliveries",
                        "ordering": ("-id",),
                    },
                ),
                migrations.CreateModel(
                    name="WebhookTry",
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
                        ("at", models.DateTimeField()),
                        ("status", models.PositiveSmallIntegerField(blank=True, null=True)),
                        ("seconds", models.FloatField()),
                        ("error", models.TextField(blank=True)),
                        ("answer", models.TextField(blank=True)),
                        (
                            "delivery",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="history",
                                to="notifications.webhookdelivery",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name_plural": "webhook tries",
                        "ordering": ("id",),
                    },
                ),
                migrations.AddIndex(
                    model_name="event",
                    index=models.Index(fields=["subject_uid", "-id"], name="event_by_subject"),
                ),
                migrations.AddIndex(
                    model_name="notification",
                    index=models.Index(
                        fields=["recipient", "-at", "-id"], name="notification_newest"
                    ),
                ),
                migrations.AddIndex(
                    model_name="notification",
                    index=models.Index(
                        condition=models.Q(("on_page", True), ("read_at", None)),
                        fields=["recipient"],
                        name="notification_unread",
                    ),
                ),
                migrations.AddIndex(
                    model_name="notification",
                    index=models.Index(
                        fields=["recipient", "collapse_key"], name="notification_collapse"
                    ),
                ),
                migrations.AddIndex(
                    model_name="mail",
                    index=models.Index(
                        condition=models.Q(
                            (
                                "state",
                                controlplane.domain.alerts.deliveries.DeliveryState["WAITING"],
                            )
                        ),
                        fields=["next_try_at"],
                        name="mail_due",
                    ),
                ),
                migrations.AddIndex(
                    model_name="mail",
                    index=models.Index(fields=["recipient", "-sent_at"], name="mail_by_recipient"),
                ),
                migrations.AddConstraint(
                    model_name="mail",
                    constraint=models.UniqueConstraint(
                        condition=models.Q(
                            (
                                "state",
                                controlplane.domain.alerts.deliveries.DeliveryState["WAITING"],
                            )
                        ),
                        fields=("notification",),
                        name="mail_one_waiting",
                    ),
                ),
                migrations.AddConstraint(
                    model_name="notificationpreference",
                    constraint=models.UniqueConstraint(
                        fields=("user", "kind"), name="preference_once_per_kind"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="webhook",
                    constraint=models.UniqueConstraint(
                        fields=("team", "name"), name="webhook_name_once_in_team"
                    ),
                ),
                migrations.AddIndex(
                    model_name="webhookdelivery",
                    index=models.Index(
                        condition=models.Q(
                            (
                                "state",
                                controlplane.domain.alerts.deliveries.DeliveryState["WAITING"],
                            )
                        ),
                        fields=["next_try_at"],
                        name="delivery_due",
                    ),
                ),
                migrations.AddConstraint(
                    model_name="webhookdelivery",
                    constraint=models.UniqueConstraint(
                        fields=("webhook", "event"), name="delivery_once_per_event"
                    ),
                ),
            ],
        ),
        migrations.RunPython(_content_types_take_over, _content_types_give_back),
    ]
