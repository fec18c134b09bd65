"""Pages of the installed engines: tasks, supported chips, images and restrictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.fleet import selectors as fleet
from apps.jobs import selectors
from apps.jobs.selectors.engines import (
    EngineFieldRestriction,
    EngineSupport,
    EngineTaskSupport,
)
from controlplane.domain.common.accelerators import Chip
from controlplane.ports import adapter_registry
from controlplane.ports.engines import ArgumentVerification, EngineTask
from controlplane.web.reasons import render_reason

TASK_LABELS: Mapping[str, Promise] = {
    EngineTask.FINETUNE: _("fine-tune"),
    EngineTask.EVALUATE: _("evaluate"),
    EngineTask.QUANTIZE: _("quantize"),
    EngineTask.SCRIPT: _("script"),
    EngineTask.SERVE: _("serve"),
}
#: Label and meaning.
FLAG_LABELS: Mapping[ArgumentVerification, tuple[Promise, Promise]] = {
    ArgumentVerification.RUN: (_("tested"), _("The tests of Ninefold run this engine.")),
    ArgumentVerification.PARSED: (
        _("arguments parsed"),
        _("The tests of Ninefold check the rendered arguments with the engine's published parser."),
    ),
    ArgumentVerification.UNVERIFIED: (
        _("flags unverified"),
        _("Written from the documentation of the engine; not checked."),
    ),
}
METRIC_LABELS: Mapping[str, Promise] = {
    "requests_running": _("running requests"),
    "requests_waiting": _("waiting requests"),
    "requests_received": _("received requests"),
    "requests_ok": _("completed requests"),
    "requests_failed": _("failed requests"),
    "prompt_tokens": _("prompt tokens"),
    "output_tokens": _("generation tokens"),
    "output_tokens_per_second": _("generation tokens/s"),
    "time_to_first_token": _("time to first token (TTFT)"),
    "inter_token_latency": _("inter-token latency"),
    "time_per_output_token": _("time per output token (TPOT)"),
    "latency": _("end-to-end request latency"),
    "kv_cache_usage": _("KV cache usage"),
    "prefix_cache_hits": _("prefix cache hits"),
    "prefix_cache_queries": _("prefix cache queries"),
    "prefix_cache_hit_rate": _("prefix cache hit rate"),
    "preemptions": _("preempted requests"),
}


@login_required
def engine_list(request: AuthenticatedRequest) -> HttpResponse:
    rows = [
        {
            "engine": engine,
            "tasks": [TASK_LABELS.get(task, task) for task in engine.tasks],
            "flags": FLAG_LABELS[engine.flags][0],
            "chips": len({chip for chips in engine.chips.values() for chip in chips}),
        }
        for engine in selectors.installed_engine_descriptions()
    ]
    return render(request, "jobs/engines.html", {"rows": rows})


@login_required
def engine_detail(request: AuthenticatedRequest, name: str) -> HttpResponse:
    described = selectors.engine_description(name)
    if described is None:
        raise Http404(f"no engine is called {name!r}")
    label, meaning = FLAG_LABELS[described.flags]
    in_fleet = fleet.cards_by_chip()
    context = {
        "engine": described,
        "flags": label,
        "flags_meaning": meaning,
        "metrics": [
            (METRIC_LABELS.get(ours, ours), series) for ours, series in described.metrics.items()
        ],
        "tasks": [
            _task_context(view, in_fleet=in_fleet, version=described.default_version)
            for view in selectors.engine_task_support(name)
        ],
        "remarks": [render_reason(remark) for remark in described.remarks],
    }
    return render(request, "jobs/engine.html", context)


def _task_context(
    view: EngineTaskSupport, *, in_fleet: Mapping[str, Any], version: str
) -> dict[str, Any]:
    return {
        "name": view.task,
        "title": TASK_LABELS[view.task],
        "count": view.count,
        "runs": [
            _support_context(support, in_fleet=in_fleet, version=version) for support in view.runs
        ],
        "does_not_run": [
            _support_context(support, in_fleet=in_fleet, version=version)
            for support in view.does_not_run
        ],
        "restrictions": [_restriction_context(each) for each in view.restrictions],
    }


def _support_context(
    support: EngineSupport, *, in_fleet: Mapping[str, Any], version: str
) -> dict[str, Any]:
    return {
        "chips": _chip_labels(support.chips),
        "image": support.image.replace("{version}", version),
        "reason": render_reason(support.reason),
        "in_fleet": [chip.label for chip in support.chips if chip.name in in_fleet],
        "run_on_hardware": any(
            adapter_registry.plugin_of_chip(chip).profile().run_on_hardware
            for chip in support.chips
        ),
    }


def _restriction_context(restriction: EngineFieldRestriction) -> dict[str, Any]:
    return {
        "label": " › ".join(gettext(part) for part in restriction.label),
        "values": [str(value) for value in restriction.values],
        "reason": render_reason(restriction.reason),
        "chips": _chip_labels(restriction.chips),
    }


def _chip_labels(chips: Sequence[Chip]) -> str:
    return ", ".join(chip.label for chip in chips)
