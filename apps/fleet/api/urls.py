from __future__ import annotations

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from apps.fleet.api import views

router = SimpleRouter(trailing_slash=False)
router.register("nodes", views.NodeViewSet, basename="node")
router.register("cards", views.CardViewSet, basename="card")

urlpatterns = [
    path("chips", views.ChipsView.as_view(), name="api-chips"),
    path("chips/<slug:name>", views.ChipView.as_view(), name="api-chip"),
    path("", include(router.urls)),
]
