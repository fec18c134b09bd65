from __future__ import annotations

from django.urls import URLPattern, URLResolver
from rest_framework.routers import SimpleRouter

from apps.quotas.api import views

router = SimpleRouter(trailing_slash=False)
router.register("queues", views.QueueViewSet, basename="queue")
router.register("claims", views.ClaimViewSet, basename="claim")

urlpatterns: list[URLPattern | URLResolver] = [*router.urls]
