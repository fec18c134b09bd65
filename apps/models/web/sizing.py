"""The sizing calculator and its chart of memory by context and concurrency."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.models.selectors import sizing
from apps.models.web.forms import SizingForm
from apps.models.web.model_version_actions import models_tabs
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.resources import GIB
from controlplane.domain.sizing import SizingEstimate
from controlplane.web.pages import is_htmx_fragment_request

#: Width of the bar in drawing units.
_BAR = 1000


@login_required
def calculator(request: AuthenticatedRequest) -> HttpResponse:
    """The form with its estimate; for htmx the estimate only. The URL contains the whole request."""
    form = SizingForm(request.GET or None, user=request.user)
    context: dict[str, Any] = {"form": form, "tabs": models_tabs("sizing")}
    if form.is_bound and form.is_valid():
        try:
            sized = form.sized(user=request.user)
        except sizing.SizingRefused as refusal:
            form.add_findings(refusal.findings)
        else:
            context |= estimate_context(sized)
            context["chart_query"] = form.chart_query()
    part = "#estimate" if is_htmx_fragment_request(request) else ""
    return render(request, f"registry/sizing.html{part}", context)


def estimate_context(sized: sizing.SizingResult) -> dict[str, Any]:
    """What ``registry/sizing_estimate.html`` shows."""
    return {
        "sized": sized,
        "estimate": sized.estimate,
        "bars": _memory_bars(sized.estimate, chip=sized.chip),
        "limit_at": _limit_position(sized.estimate, chip=sized.chip),
        "token_bytes": round(sized.estimate.bytes_per_token),
    }


@login_required
def memory_curve_data(request: AuthenticatedRequest) -> HttpResponse:
    """``?model=catalog:KEY`` or ``version:UID``, and any of ``scheme``, ``engine``, ``kv_precision``."""
    requested = {
        name: request.GET[name]
        for name in ("scheme", "engine", "kv_precision")
        if request.GET.get(name)
    }
    try:
        subject = sizing.sizing_subject_by_name(request.GET.get("model", ""), user=request.user)
        curves = sizing.memory_curves(subject, **requested)
    except sizing.SizingRefused as refusal:
        findings = [{"field": each.field, "message": each.message} for each in refusal.findings]
        return JsonResponse({"errors": findings}, status=422)
    body = {
        "x": {"label": _("context"), "unit": _("tokens"), "type": "log"},
        "y": {"label": _("memory"), "unit": "GiB"},
        "series": [
            {
                "name": ngettext(
                    "%(count)s concurrent request", "%(count)s concurrent requests", one.concurrency
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


def _memory_bars(estimate: SizingEstimate, *, chip: Chip) -> list[Mapping[str, Any]]:
    """The memory parts with label, offset and width in the bar."""
    whole = _bar_bytes(estimate, chip=chip)
    labels = _part_labels()
    bars: list[Mapping[str, Any]] = []
    at = 0
    for part in estimate.parts:
        if not part.bytes:
            continue
        width = max(1, round(part.bytes / whole * _BAR))
        bars.append(
            {
                "name": part.name,
                "label": labels[part.name],
                "bytes": part.bytes,
                "x": at,
                "width": width,
            }
        )
        at += width
    return bars


def _bar_bytes(estimate: SizingEstimate, *, chip: Chip) -> int:
    """Bytes of the whole bar: the card, or all parts if they are larger."""
    return max(chip.memory, estimate.total + estimate.not_at_once, 1)


def _limit_position(estimate: SizingEstimate, *, chip: Chip) -> int | None:
    """Position of the usable limit in the bar."""
    if estimate.limit is None:
        return None
    return round(estimate.limit / _bar_bytes(estimate, chip=chip) * _BAR)


def _part_labels() -> Mapping[str, str]:
    return {
        "weights": pgettext("memory", "weights"),
        "adapters": pgettext("memory", "LoRA adapters"),
        "cache": pgettext("memory", "KV cache"),
        "gradients": pgettext("memory", "gradients"),
        "optimizer": pgettext("memory", "optimizer"),
        "activations": pgettext("memory", "activations"),
        "logits": pgettext("memory", "logits"),
        "graphs": pgettext("memory", "captured graphs"),
        "process": pgettext("memory", "process overhead"),
    }
