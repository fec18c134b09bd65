from __future__ import annotations

from django.urls import path

from apps.notifications.web import notifications as inbox
from apps.notifications.web import webhooks

urlpatterns = [
    path("notifications", inbox.notifications, name="notifications"),
    path("notifications/read", inbox.notifications_mark_read_view, name="notifications-read"),
    path("notifications/undo", inbox.notifications_mark_unread_view, name="notifications-undo"),
    path("notifications/bell", inbox.notification_bell_fragment, name="notification-bell"),
    path("notifications/settings", inbox.notification_settings_view, name="notification-settings"),
    path("notifications/test", inbox.send_test_notification, name="notification-test"),
    path("notifications/<str:uid>", inbox.notification_open, name="notification"),
    path("teams/<slug:slug>/webhooks", webhooks.webhooks, name="webhooks"),
    path("teams/<slug:slug>/webhooks/new", webhooks.webhook_new, name="webhook-new"),
    path("webhooks/<str:uid>", webhooks.webhook, name="webhook"),
    path("webhooks/<str:uid>/change", webhooks.webhook_change, name="webhook-change"),
    path("webhooks/<str:uid>/test", webhooks.webhook_test, name="webhook-test"),
    path("webhooks/<str:uid>/pause", webhooks.webhook_pause, name="webhook-pause"),
    path("webhooks/<str:uid>/resume", webhooks.webhook_resume, name="webhook-resume"),
    path("webhooks/<str:uid>/secret", webhooks.webhook_secret_rotate_view, name="webhook-rotate"),
    path("webhooks/<str:uid>/delete", webhooks.webhook_delete, name="webhook-delete"),
    path(
        "webhooks/<str:uid>/deliveries/<str:delivery>/again",
        webhooks.webhook_delivery_retry_view,
        name="delivery-again",
    ),
]
