"""The calculator: what a model takes in memory on a chip, live, and its chart by context and batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from apps.accounts.web.requests import AuthenticatedRequest
from apps.models.selectors import sizing
from apps.models.web.sizing_forms import SizingForm
from apps.models.web.tabs import models_tabs
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.resources import GIB
from controlplane.domain.sizing import Answer
from controlplane.web.pages import is_fragment

#: Widths of the drawn bar.
_BAR = 1000


@login_required
def calculator(request: AuthenticatedRequest) -> HttpResponse:
    """The form with its answer; for htmx the answer alone. Everything asked is in the address."""
    form = SizingForm(request.GET or None, user=request.user)
    context: dict[str, Any] = {"form": form, "tabs": models_tabs("sizing")}
    if form.is_bound and form.is_valid():
        try:
            sized = form.sized(user=request.user)
        except sizing.SizingRefused as refusal:
            form.add_findings(refusal.findings)
        else:
            context |= {
                "sized": sized,
                "bars": _bars(sized.answer, chip=sized.chip),
                "limit_at": _limit_at(sized.answer, chip=sized.chip),
                "token_bytes": round(sized.answer.bytes_per_token),
                "chart_query": form.chart_query(),
            }
    part = "#answer" if is_fragment(request) else ""
    return render(request, f"registry/sizing.html{part}", context)


@login_required
def curve(request: AuthenticatedRequest) -> HttpResponse:
    """``?model=catalog:KEY`` or ``version:UID``, and any of ``scheme``, ``engine``, ``kv_precision``."""
    asked = {
        name: request.GET[name]
        for name in ("scheme", "engine", "kv_precision")
        if request.GET.get(name)
    }
    try:
        subject = sizing.subject_called(request.GET.get("model", ""), user=request.user)
        curves = sizing.curves_of(subject, **asked)
    except sizing.SizingRefused as refusal:
        findings = [{"field": each.field, "message": each.message} for each in refusal.findings]
        return JsonResponse({"errors": findings}, status=422)
    body = {
        "x": {"label": _("context"), "unit": _("tokens"), "type": "log"},
        "y": {"label": _("memory"), "unit": "GiB"},
        "series": [
            {
                "name": ngettext(
                    "%(count)s request at once", "%(count)s requests at once", one.concurrency
                )
                % {"count": one.concurrency},
                "kind": "line",
                "x": list(one.contexts),
                "y": [round(total / GIB, 2) for total in one.totals],
            }
            for one in curves
        ],
        "marks": [],
        "ended": True,
    }
    return JsonResponse(body)


def _bars(answer: Answer, *, chip: Chip) -> list[Mapping[str, Any]]:
    """The parts in words, each with where it begins in the bar and how wide it is."""
    whole = _whole(answer, chip=chip)
    words = _words()
    bars: list[Mapping[str, Any]] = []
    at = 0
    for part in answer.parts:
        if not part.bytes:
            continue
        width = max(1, round(part.bytes / whole * _BAR))
        bars.append(
            {
                "name": part.name,
                "label": words[part.name],
                "bytes": part.bytes,
                "x": at,
                "width": width,
            }
        )
        at += width
    return bars


def _whole(answer: Answer, *, chip: Chip) -> int:
    """Bytes that the whole bar stands for: the card, or all parts where they are more."""
    return max(chip.memory, answer.total + answer.not_at_once, 1)


def _limit_at(answer: Answer, *, chip: Chip) -> int | None:
    """Where in the bar ends what may be used."""
    if answer.limit is None:
        return None
    return round(answer.limit / _whole(answer, chip=chip) * _BAR)


def _words() -> Mapping[str, str]:
    return {
        "weights": pgettext("memory", "weights"),
        "cache": pgettext("memory", "KV cache"),
        "gradients": pgettext("memory", "gradients"),
        "optimizer": pgettext("memory", "optimizer"),
        "activations": pgettext("memory", "activations"),
        "logits": pgettext("memory", "logits"),
        "graphs": pgettext("memory", "recorded graphs"),
        "process": pgettext("memory", "the process itself"),
    }
