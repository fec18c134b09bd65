"""Notifications and their deliveries, read-only."""

from __future__ import annotations

from django.contrib import admin

from apps.notifications.models import (
    Event,
    Mail,
    Notification,
    NotificationPreference,
    Webhook,
    WebhookDelivery,
    WebhookTry,
)
from controlplane.web.admin import ReadOnlyAdmin


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin[Event]):
    list_display = ("kind", "subject_name", "team", "at")
    list_filter = ("kind", "team")
    search_fields = ("subject_name", "subject_uid", "uid")
    list_select_related = ("team",)


@admin.register(Notification)
class NotificationAdmin(ReadOnlyAdmin[Notification]):
    list_display = ("kind", "recipient", "count", "at", "read_at", "on_page")
    list_filter = ("kind", "severity", ("read_at", admin.EmptyFieldListFilter))
    search_fields = ("recipient__username", "uid")
    list_select_related = ("recipient",)


@admin.register(NotificationPreference)
class NotificationPreferenceAdmin(ReadOnlyAdmin[NotificationPreference]):
    list_display = ("user", "kind", "page", "email", "whole_team")
    list_filter = ("kind",)
    search_fields = ("user__username",)
    list_select_related = ("user",)


@admin.register(Mail)
class MailAdmin(ReadOnlyAdmin[Mail]):
    list_display = ("recipient", "state", "tries", "next_try_at", "sent_at", "error")
    list_filter = ("state",)
    search_fields = ("recipient__username", "uid")
    list_select_related = ("recipient",)


@admin.register(Webhook)
class WebhookAdmin(ReadOnlyAdmin[Webhook]):
    list_display = ("name", "team", "active", "tried_at", "last_status", "last_error", "given_up")
    list_filter = ("active", "team")
    search_fields = ("name", "uid")
    list_select_related = ("team",)
    exclude = ("secret",)


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin[WebhookDelivery]):
    list_display = ("event", "webhook", "state", "tries", "next_try_at", "ended_at")
    list_filter = ("state",)
    search_fields = ("webhook__name", "uid", "event__uid")
    list_select_related = ("event", "webhook")


@admin.register(WebhookTry)
class WebhookTryAdmin(ReadOnlyAdmin[WebhookTry]):
    list_display = ("delivery", "at", "status", "seconds", "error")
    list_filter = ("status",)
    search_fields = ("delivery__uid",)
    list_select_related = ("delivery__event", "delivery__webhook")
