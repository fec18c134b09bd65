from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from apps.accounts.api.serializers import OwnedSerializer
from apps.monitoring.models import Notification, Webhook, WebhookDelivery, WebhookTry
from apps.monitoring.selectors.catalogue import href_of, told
from apps.monitoring.selectors.webhooks import SENDABLE, webhooks_visible
from controlplane.domain.deliveries import DeliveryState
from controlplane.domain.news import NewsKind
from controlplane.web.rest import Filters, M, Reference, StrictSerializer, VisibleField


class NotificationSerializer(serializers.ModelSerializer[Notification]):
    team = Reference(source="event.team", allow_null=True)
    subject = serializers.SerializerMethodField(help_text="What it is about: kind, uid and name.")
    title = serializers.SerializerMethodField(help_text="What happened, in words.")
    reason = serializers.SerializerMethodField(help_text="Why, as it was said; may be empty.")
    link = serializers.SerializerMethodField(help_text="Path of the subject's page.")

    class Meta:
        model = Notification
        fields = (
            "uid",
            "kind",
            "severity",
            "title",
            "reason",
            "subject",
            "team",
            "link",
            "count",
            "first_at",
            "at",
            "read_at",
        )

    def get_subject(self, row: Notification) -> dict[str, str]:
        event = row.event
        return {
            "kind": event.subject_kind,
            "uid": event.subject_uid,
            "name": event.subject_name,
        }

    def get_title(self, row: Notification) -> str:
        return told(row.event).title

    def get_reason(self, row: Notification) -> str:
        return str(row.event.payload.get("reason", ""))

    def get_link(self, row: Notification) -> str:
        return href_of(row.event)


class NotificationFilters(Filters):
    kind = serializers.ChoiceField(choices=[*NewsKind], required=False)
    unread = serializers.BooleanField(required=False, help_text="Only those that are not read.")
    lookups = {"kind": "kind"}

    @classmethod
    def apply(cls, rows: QuerySet[M, Any], given: Mapping[str, Any]) -> QuerySet[M, Any]:
        rows = super().apply(rows, given)
        return rows.filter(read_at__isnull=given["unread"]) if "unread" in given else rows


class MarkedSerializer(serializers.Serializer[Any]):
    marked = serializers.IntegerField(help_text="How many were unread until now.")


class WebhookSerializer(serializers.ModelSerializer[Webhook]):
    team = Reference()
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)
    kinds = serializers.ListField(child=serializers.ChoiceField(choices=SENDABLE))

    class Meta:
        model = Webhook
        fields: tuple[str, ...] = (
            "uid",
            "name",
            "team",
            "url",
            "kinds",
            "active",
            "trouble",
            "created_by",
            "created_at",
            "tried_at",
            "last_status",
            "last_error",
        )


class WebhookWithSecretSerializer(WebhookSerializer):
    secret = serializers.CharField(help_text="Signs each call. It is shown only here.")

    class Meta(WebhookSerializer.Meta):
        fields = (*WebhookSerializer.Meta.fields, "secret")


class WebhookChangedSerializer(WebhookSerializer):
    secret = serializers.CharField(
        help_text="A new one if the URL's scheme, host or port changed; it is shown only here. Else empty."
    )

    class Meta(WebhookSerializer.Meta):
        fields = (*WebhookSerializer.Meta.fields, "secret")


class WebhookCreateSerializer(OwnedSerializer):
    name = serializers.CharField(max_length=80)
    url = serializers.CharField(max_length=2000)
    kinds = serializers.ListField(child=serializers.ChoiceField(choices=SENDABLE), min_length=1)


class WebhookChangeSerializer(StrictSerializer[Any]):
    url = serializers.CharField(max_length=2000, required=False)
    kinds = serializers.ListField(
        child=serializers.ChoiceField(choices=SENDABLE), min_length=1, required=False
    )
    active = serializers.BooleanField(required=False, help_text="False pauses it.")


class WebhookTrySerializer(serializers.ModelSerializer[WebhookTry]):
    class Meta:
        model = WebhookTry
        fields = ("at", "status", "seconds", "error", "answer")


class DeliveryFilters(Filters):
    webhook = VisibleField(visible=webhooks_visible, required=False, help_text="Its uid.")
    state = serializers.ChoiceField(choices=[*DeliveryState], required=False)
    lookups = {"webhook": "webhook", "state": "state"}


class DeliverySerializer(serializers.ModelSerializer[WebhookDelivery]):
    webhook = Reference()
    event = serializers.CharField(source="event.uid", help_text="The id that the receiver gets.")
    kind = serializers.CharField(source="event.kind")
    tries = WebhookTrySerializer(source="history", many=True, help_text="The newest first.")

    class Meta:
        model = WebhookDelivery
        fields = (
            "uid",
            "webhook",
            "event",
            "kind",
            "state",
            "created_at",
            "next_try_at",
            "ended_at",
            "tries",
        )
