"""Notifications and their deliveries, read-only."""

from __future__ import annotations

from django.contrib import admin

from apps.notifications import models
from controlplane.web.admin import ReadOnlyAdmin


@admin.register(models.Event)
class EventAdmin(ReadOnlyAdmin[models.Event]):
    list_display = ("kind", "subject_name", "team", "at")
    list_filter = ("kind", "team")
    search_fields = ("subject_name", "subject_uid", "uid")
    list_select_related = ("team",)


@admin.register(models.Notification)
class NotificationAdmin(ReadOnlyAdmin[models.Notification]):
    list_display = ("kind", "recipient", "count", "at", "read_at", "on_page")
    list_filter = ("kind", "severity", ("read_at", admin.EmptyFieldListFilter))
    search_fields = ("recipient__username", "uid")
    list_select_related = ("recipient",)


@admin.register(models.NotificationPreference)
class NotificationPreferenceAdmin(ReadOnlyAdmin[models.NotificationPreference]):
    list_display = ("user", "kind", "page", "email", "whole_team")
    list_filter = ("kind",)
    search_fields = ("user__username",)
    list_select_related = ("user",)


@admin.register(models.Mail)
class MailAdmin(ReadOnlyAdmin[models.Mail]):
    list_display = ("recipient", "state", "tries", "next_try_at", "sent_at", "error")
    list_filter = ("state",)
    search_fields = ("recipient__username", "uid")
    list_select_related = ("recipient",)


@admin.register(models.Webhook)
class WebhookAdmin(ReadOnlyAdmin[models.Webhook]):
    list_display = ("name", "team", "active", "tried_at", "last_status", "last_error", "given_up")
    list_filter = ("active", "team")
    search_fields = ("name", "uid")
    list_select_related = ("team",)
    exclude = ("secret",)


@admin.register(models.WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin[models.WebhookDelivery]):
    list_display = ("event", "webhook", "state", "tries", "next_try_at", "ended_at")
    list_filter = ("state",)
    search_fields = ("webhook__name", "uid", "event__uid")
    list_select_related = ("event", "webhook")


@admin.register(models.WebhookTry)
class WebhookTryAdmin(ReadOnlyAdmin[models.WebhookTry]):
    list_display = ("delivery", "at", "status", "seconds", "error")
    list_filter = ("status",)
    search_fields = ("delivery__uid",)
    list_select_related = ("delivery__event", "delivery__webhook")
