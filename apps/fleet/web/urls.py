from __future__ import annotations

from django.urls import path

from apps.fleet.web import chips

urlpatterns = [
    path("fleet/chips", chips.chip_list, name="chips"),
    path("fleet/chips/<slug:name>", chips.chip_detail, name="chip"),
]
