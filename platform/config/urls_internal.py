"""Between the parts of the product; the rest of the world is refused."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from apps.serving.api import gateway_api

urlpatterns: list[URLPattern | URLResolver] = [
    path("gateway/snapshot", gateway_api.SnapshotView.as_view(), name="gateway-snapshot"),
    path("gateway/usage", gateway_api.UsageView.as_view(), name="gateway-usage"),
]
