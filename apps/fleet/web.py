"""Pages of the chips that plug-ins know: specifications, allocation rules, metrics, fault levels and engines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.fleet import selectors
from apps.fleet.selectors import FleetChip
from controlplane.domain.common.accelerators import Chip, ChipKind, Dtype, ProfileConfidence
from controlplane.domain.common.resources import GIB
from controlplane.domain.health.faults import FaultLevel
from controlplane.ports import adapter_registry
from controlplane.ports.chips import ExporterSeries, VendorProfile
from controlplane.ports.engines import EngineTask
from controlplane.web.tables import FilterForm

KINDS: Mapping[ChipKind, Promise] = {
    ChipKind.CPU: _("processor"),
    ChipKind.GPU: _("GPU"),
    ChipKind.NPU: _("NPU"),
}
LEVELS: Mapping[FaultLevel, Promise] = {
    FaultLevel.NOTE: _("record the fault"),
    FaultLevel.RESTART_REQUEST: _("retry the request"),
    FaultLevel.RESTART_JOB: _("restart the job"),
    FaultLevel.RESET_WHEN_IDLE: _("cordon the card and reset it when idle"),
    FaultLevel.RESET_NOW: _("reset now"),
    FaultLevel.ISOLATE: _("isolate the card"),
}
#: Labels of exporter metrics, by the names of ``controlplane.ports.chips.Exporter``.
METRIC_LABELS: Mapping[str, Promise] = {
    "utilization": _("Utilization"),
    "memory_used": _("Memory in use"),
    "memory_total": _("Total memory"),
    "temperature": _("Temperature"),
    "power": _("Power"),
    "health": _("Health"),
    "fault": _("Fault"),
}
_WHOLE = frozenset({Dtype.INT8, Dtype.INT4})
_GIGA, _TERA = 1e9, 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipSpecValue:
    code: str
    label: str
    #: With its unit; empty where nobody published it.
    value: str
    #: No document of the maker confirms it.
    unverified: bool = False


def spec_values(chip: Chip) -> list[ChipSpecValue]:
    """Memory, bandwidths and rates; what has no value is not published."""
    memory = f"{chip.memory / GIB:.4g} GiB" if chip.memory else ""
    return [
        _spec_value(chip, "memory", gettext("Memory"), memory),
        _spec_value(
            chip,
            "memory_bandwidth",
            gettext("Memory bandwidth"),
            _bandwidth_label(chip.memory_bandwidth),
        ),
        _spec_value(
            chip,
            "link_bandwidth",
            gettext("Link bandwidth, one direction"),
            _bandwidth_label(chip.link_bandwidth),
        ),
        _spec_value(chip, "peak_rates", gettext("Peak performance"), _best_rate_label(chip)),
    ]


def peak_rates(chip: Chip) -> list[ChipSpecValue]:
    """Return dense peak rates by number format, wide ones first; unpublished ones are omitted."""
    return [
        ChipSpecValue(
            code=dtype.value,
            label=dtype.value,
            value=_compute_rate_label(dtype, chip.peak_rates[dtype]),
            unverified="peak_rates" in chip.unverified,
        )
        for dtype in sorted(chip.peak_rates, key=tuple(Dtype).index)
    ]


def _spec_value(chip: Chip, code: str, label: str, value: str) -> ChipSpecValue:
    return ChipSpecValue(
        code=code, label=label, value=value, unverified=bool(value) and code in chip.unverified
    )


def _best_rate_label(chip: Chip) -> str:
    order = (Dtype.BFLOAT16, Dtype.FLOAT16, *chip.peak_rates)
    found = next((one for one in order if one in chip.peak_rates), None)
    return f"{_compute_rate_label(found, chip.peak_rates[found])} {found.value}" if found else ""


def _compute_rate_label(dtype: Dtype, rate: float) -> str:
    return f"{rate / _TERA:,.5g} {'TOPS' if dtype in _WHOLE else 'TFLOPS'}"


def _bandwidth_label(amount: float | None) -> str:
    if amount is None:
        return ""
    return f"{amount / _TERA:.4g} TB/s" if amount >= _TERA else f"{amount / _GIGA:.4g} GB/s"


_TASKS: Mapping[EngineTask, Promise] = {
    EngineTask.FINETUNE: _("fine-tune"),
    EngineTask.EVALUATE: _("evaluate"),
    EngineTask.QUANTIZE: _("quantize"),
    EngineTask.SERVE: _("serve"),
}


class ChipFilter(FilterForm):
    text = forms.CharField(label=_("Name"), max_length=60)
    vendor = forms.ChoiceField(label=_("Vendor"))
    kind = forms.ChoiceField(label=_("Kind"), choices=[("", _("all")), *KINDS.items()])
    here = forms.BooleanField(label=_("Only chips in the fleet"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        titles = {
            name: one.profile().title for name, one in adapter_registry.chip_plugins().items()
        }
        self.choice("vendor").choices = [
            ("", _("all")),
            *sorted(titles.items(), key=lambda item: item[1].lower()),
        ]

    def narrow(self, known: Iterable[FleetChip]) -> list[FleetChip]:
        """Those of the chips that match every chosen value."""
        text = (self.chosen("text") or "").strip().lower()
        vendor, kind = self.chosen("vendor"), self.chosen("kind")
        return [
            one
            for one in known
            if vendor in (None, one.chip.vendor)
            and kind in (None, one.chip.kind)
            and (one.cards or not self.chosen("here"))
            and any(
                text in name for name in (one.chip.name, one.chip.title.lower(), *one.chip.aliases)
            )
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipList:
    """What the shared partial of filters reads; the list is short enough to have no pages."""

    filters: ChipFilter
    rows: list[dict[str, Any]]
    clear_href: str = "?"
    carried_parameters: tuple[tuple[str, str], ...] = ()

    @property
    def filtered(self) -> bool:
        return self.filters.in_use

    @property
    def ignored(self) -> list[str]:
        return self.filters.invalid_filters


@login_required
def chip_list(request: HttpRequest) -> HttpResponse:
    known = selectors.fleet_chips()
    filters = ChipFilter(request.GET)
    table = ChipList(filters=filters, rows=[_chip_row(one) for one in filters.narrow(known)])
    context = {
        "table": table,
        "vendors": len({one.chip.vendor for one in known}),
        "total": len(known),
    }
    return render(request, "fleet/chips.html", context)


@login_required
def chip_detail(request: HttpRequest, name: str) -> HttpResponse:
    """One chip; another of its names leads here."""
    known = selectors.fleet_chip(name)
    if known is None:
        raise Http404(f"no plug-in knows a chip called {name!r}")
    if known.chip.name != name:
        return redirect("chip", name=known.chip.name)
    one, profile = known.chip, known.profile
    code = request.GET.get("code", "").strip()[:60]
    context = {
        **_chip_row(known),
        "figures": spec_values(one),
        "rates": peak_rates(one),
        "geometry": one.geometry,
        "environment": adapter_registry.plugin_of_chip(one).environment(one, cards=(0, 1)),
        "metrics": _exporter_series_by_metric(profile),
        "levels": _fault_levels(profile),
        "code": code,
        "code_level": _fault_code_action_label(profile, code),
        "engines": _engine_support_rows(one),
        "aliases": sorted(one.aliases - {one.name}),
    }
    return render(request, "fleet/chip.html", context)


def _chip_row(known: FleetChip) -> dict[str, Any]:
    chip = known.chip
    return {
        "known": known,
        "chip": chip,
        "profile": known.profile,
        "kind": KINDS[chip.kind],
        "rate": next(
            (rate for rate in peak_rates(chip) if rate.code in ("bfloat16", "float16")), None
        ),
        "unverified": [
            spec_value.label for spec_value in spec_values(chip) if spec_value.unverified
        ],
        "unknown": chip.confidence is ProfileConfidence.UNVERIFIED,
    }


def _exporter_series_by_metric(
    profile: VendorProfile,
) -> list[tuple[Promise | str, ExporterSeries]]:
    """Return the series that each metric is read from."""
    series = profile.exporter.series if profile.exporter else {}
    return [(METRIC_LABELS.get(name, name), one) for name, one in series.items()]


def _fault_levels(profile: VendorProfile) -> list[dict[str, Any]]:
    """The levels of the vendor's fault map with how many codes each has, and which."""
    counts = Counter(profile.faults.levels.values())
    return [
        {
            "level": level,
            "word": LEVELS[level],
            "count": counts[level],
            "codes": sorted(
                (code for code, at in profile.faults.levels.items() if at is level),
                key=lambda code: (len(code), code),
            ),
        }
        for level in FaultLevel
        if counts[level]
    ]


def _fault_code_action_label(profile: VendorProfile, code: str) -> str:
    """Return the label of the action for an entered fault code; empty if none was entered."""
    if not code:
        return ""
    upper = code if code in profile.faults.levels else code.upper().removeprefix("0X")
    level = profile.faults.level(upper)
    if upper in profile.faults.levels:
        return f"L{level.value} · {LEVELS[level]}"
    return gettext(
        "fault code not in the vendor's table: the card is isolated unless the vendor rates "
        "the code as minor"
    )


def _engine_support_rows(chip: Chip) -> list[dict[str, Any]]:
    """What each installed engine does on it, or why not."""
    rows = []
    for name in adapter_registry.engine_names():
        engine = adapter_registry.engine_by_name(name)
        tasks = [task for task in _TASKS if task in engine.tasks]
        against = {task: engine.unsupported_reason(task, chip) for task in tasks}
        rows.append(
            {
                "title": engine.profile().title,
                "does": [_TASKS[task] for task in tasks if not against[task]],
                "reasons": sorted({reason for reason in against.values() if reason}),
            }
        )
    return sorted(rows, key=lambda row: (not row["does"], str(row["title"]).lower()))


urlpatterns = [
    path("fleet/chips", chip_list, name="chips"),
    path("fleet/chips/<slug:name>", chip_detail, name="chip"),
]
