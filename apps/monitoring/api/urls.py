from __future__ import annotations

from django.urls import URLPattern, URLResolver
from rest_framework.routers import SimpleRouter

from apps.monitoring.api import problems, views

#: Imported for what it registers.
REGISTERS = (problems,)

router = SimpleRouter(trailing_slash=False)
router.register("notifications", views.NotificationViewSet, basename="api-notification")
router.register("webhooks", views.WebhookViewSet, basename="api-webhook")
router.register("deliveries", views.DeliveryViewSet, basename="api-delivery")

urlpatterns: list[URLPattern | URLResolver] = [*router.urls]
