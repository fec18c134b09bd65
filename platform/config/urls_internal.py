"""Between the parts of the product; the rest of the world is refused."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from apps.serving.api import gateways

urlpatterns: list[URLPattern | URLResolver] = [
    path("gateway/snapshot", gateways.SnapshotView.as_view(), name="gateway-snapshot"),
    path("gateway/usage", gateways.UsageView.as_view(), name="gateway-usage"),
]
