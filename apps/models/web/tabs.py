"""The parts of pages of which one is in the app that knows who uses it."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from apps.models.models import DatasetVersion
from controlplane.web.pages import Tab


def models_tabs(current: str) -> list[Tab]:
    """``current`` is ``catalog``, ``ours`` or ``sizing``."""
    parts = (
        ("catalog", pgettext("tab", "Catalog"), "catalog"),
        ("ours", pgettext("tab", "Ours"), "models"),
        ("sizing", _("What fits where"), "sizing"),
    )
    return [
        Tab(label=label, href=reverse(name), current=key == current) for key, label, name in parts
    ]


def dataset_tabs(version: DatasetVersion, current: str) -> list[Tab]:
    """``current`` is ``overview``, ``rows`` or ``lineage``."""
    parts = (
        ("overview", _("Overview"), "dataset-version"),
        ("rows", pgettext("tab", "Rows"), "dataset-rows"),
        ("lineage", _("Who uses it"), "dataset-lineage"),
    )
    return [
        Tab(label=label, href=reverse(name, args=[version.uid]), current=key == current)
        for key, label, name in parts
    ]
