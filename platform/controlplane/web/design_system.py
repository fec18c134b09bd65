"""The design system page: every component in every state, for developers of pages."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from controlplane.domain.common.accelerators import ChipKind
from controlplane.outbox.models import OutboxMessage
from controlplane.web.forms import StyledForm
from controlplane.web.pages import (
    HtmxRequest,
    KeysetPage,
    PageTab,
    ToastLevel,
    add_toast,
    is_htmx_fragment_request,
)
from controlplane.web.state_badges import STATE_BADGES
from controlplane.web.tables import BulkAction, FilterForm, ListTable, TableColumn

View = Callable[..., HttpResponseBase]

COLUMNS = (
    TableColumn(key="id", label=_("Number"), sort="pk", numeric=True),
    TableColumn(key="topic", label=_("Topic"), sort="topic"),
    TableColumn(key="created_at", label=_("Since"), sort="created_at"),
    TableColumn(key="delivered_at", label=_("Delivered"), sort="delivered_at"),
)


def staff_only(view: View) -> View:
    """Return 404 for users who are not staff."""

    @wraps(view)
    def guarded(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
        if not request.user.is_staff:
            raise Http404
        return view(request, **arguments)

    return guarded


class DesignSampleFilter(FilterForm):
    topic = forms.CharField(label=_("Topic"), max_length=40)
    delivered = forms.BooleanField(label=_("delivered messages only"))
    number = forms.IntegerField(label=_("Number"))
    lookups: ClassVar[Mapping[str, str]] = {"topic": "topic__icontains", "number": "pk"}


class SampleForm(StyledForm):
    """One field of each kind."""

    more = ("seed", "notes")

    name = forms.CharField(label=_("Name"), max_length=20, help_text=_("Up to 20 characters."))
    chip = forms.ChoiceField(label=_("Chip"), choices=[(kind, kind.upper()) for kind in ChipKind])
    cards = forms.IntegerField(label=_("Cards"), min_value=1, max_value=8, initial=1)
    shared = forms.BooleanField(label=_("Available to all teams"), required=False)
    metrics = forms.MultipleChoiceField(
        label=_("Metrics"),
        choices=[("exact_match", _("exact match")), ("perplexity", _("perplexity"))],
        widget=forms.CheckboxSelectMultiple,
        required=False,
    )
    file = forms.FileField(label=_("File"), required=False)
    seed = forms.IntegerField(label=_("Seed"), required=False)
    notes = forms.CharField(
        label=_("Notes"), widget=forms.Textarea(attrs={"rows": 3}), required=False
    )


@staff_only
def design_page(request: HtmxRequest) -> HttpResponseBase:
    if request.method == "POST":
        return _design_toast_example(request)
    own_url = reverse("design")
    warning = _("Nothing is changed on this page.")
    bulk = BulkAction(name="nothing", label=_("No action"), href=own_url, warning=warning)
    table = ListTable(
        request,
        OutboxMessage.objects.all(),
        columns=COLUMNS,
        filters=DesignSampleFilter,
        size=5,
        bulk=[bulk],
    )
    if table.is_csv_request:
        return table.csv(filename="news.csv")
    current = request.GET.get("tab", "overview")
    labels = {"overview": _("Overview"), "events": _("Events"), "spec": _("Spec")}
    context = {
        "table": table,
        "page": KeysetPage(rows=table.rows, next_before="0"),
        "tabs": [
            PageTab(
                label=label,
                href=f"?tab={key}",
                current=key == current,
                count=12 if key == "events" else None,
            )
            for key, label in labels.items()
        ],
        "looks": list(STATE_BADGES),
        "kinds": list(ChipKind),
        "levels": list(ToastLevel),
        "form": SampleForm(auto_id="fresh-%s"),
        "wrong": (form := SampleForm({"name": "x" * 30, "cards": "90"}, auto_id="wrong-%s")),
        "problems": [("", "", list(errors)) for errors in form.errors.values()],
        "charts": CHARTS,
    }
    return render(request, "design.html", context)


def _design_toast_example(request: HtmxRequest) -> HttpResponse:
    """Show a toast for htmx, else a message."""
    level = request.POST.get("level", "success")
    level = level if level in set(ToastLevel) else ToastLevel.INFO
    text = _("Example of a notification.")
    if is_htmx_fragment_request(request):
        return add_toast(HttpResponse(status=204), level=level, text=text)
    messages.add_message(request, getattr(messages, level.upper()), text)
    return redirect("design")


CHARTS: Mapping[str, Any] = {
    "lines": _("Loss"),
    "gaps": _("Gaps in the metrics of a card"),
    "marks": _("Effect of a new release"),
    "chips": _("Latency by chip"),
    "bars": _("Row length"),
    "live": _("Loading state"),
    "empty": _("Empty state"),
    "failing": _("Error state"),
}


@staff_only
def design_chart(request: HttpRequest, kind: str) -> HttpResponseBase:
    """Curves of functions, so that every kind of chart has something to show."""
    if kind not in CHARTS:
        raise Http404
    if kind == "failing":
        return HttpResponse("these are no figures", content_type="text/plain")
    drawing = {
        "x": {"label": _("step"), "unit": ""},
        "y": {"label": _("loss"), "unit": _("nats")},
        "series": _SERIES[kind],
        "marks": [{"x": 40, "label": "v2", "kind": "release"}] if kind == "marks" else [],
        "ended": True,
    }
    if kind == "live":
        drawing |= _live_chart(request.GET.get("after", ""))
    if kind == "bars":
        drawing |= {
            "x": {"label": _("length"), "unit": _("tokens"), "type": "category"},
            "y": {"label": _("rows"), "unit": ""},
        }
    return JsonResponse(drawing)


def _sample_curve(
    name: str | Promise, *, rate: float, kind: str = "line", **more: Any
) -> dict[str, Any]:
    steps = list(range(0, 101, 2))
    values = [round(3 * math.exp(-rate * step) + 0.2 * math.sin(step / 5), 4) for step in steps]
    return {"name": name, "x": steps, "y": values, "kind": kind, **more}


def _with_gap() -> dict[str, Any]:
    curve = _sample_curve(_("card 3"), rate=0.01)
    values = [None if 30 < x < 60 else y for x, y in zip(curve["x"], curve["y"], strict=True)]
    return {**curve, "y": values}


def _live_chart(after: str) -> dict[str, Any]:
    """Two more points a call, until there are forty."""
    begin = int(after) if after.isascii() and after.isdecimal() and len(after) < 4 else 0
    steps = list(range(begin, begin + 2))
    values = [round(2 * math.exp(-step / 15), 4) for step in steps]
    series = [{"name": _("training"), "x": steps, "y": values, "kind": "line"}]
    end = begin + 2
    return {"series": series, "ended": end >= 40, "more": f"?after={end}"}


_SERIES: Mapping[str, list[dict[str, Any]]] = {
    "lines": [
        _sample_curve(_("training"), rate=0.03),
        _sample_curve(_("validation"), rate=0.02, kind="markers"),
        _sample_curve(_("base model"), rate=0.0, dash="dash"),
    ],
    "gaps": [_with_gap()],
    "marks": [_sample_curve(_("training"), rate=0.03)],
    "chips": [
        _sample_curve("GPU", rate=0.03, hue="gpu"),
        _sample_curve("NPU", rate=0.025, hue="npu"),
    ],
    "bars": [
        {
            "name": _("rows"),
            "x": ["≤ 64", "≤ 128", "≤ 256", "≤ 512", "≤ 1,024"],
            "y": [120, 480, 910, 300, 42],
            "kind": "bar",
        }
    ],
    "live": [],
    "empty": [],
}
