"""Pages of the chips that plug-ins know: what each is, how its cards are given out, how well it is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.fleet import selectors
from apps.fleet.selectors import KnownChip
from apps.fleet.web.figures import (
    KINDS,
    LEVELS,
    READINGS,
    Figure,
    figures_of,
    given_out,
    rates_of,
)
from controlplane.domain.accelerators import Chip, Confidence
from controlplane.domain.faults import FaultLevel
from controlplane.ports import registry
from controlplane.ports.chips import Series, VendorProfile
from controlplane.ports.engines import Task
from controlplane.web.tables import FilterForm

_TASKS: Mapping[Task, Promise] = {
    Task.FINETUNE: _("fine-tune"),
    Task.EVALUATE: _("evaluate"),
    Task.QUANTIZE: _("quantize"),
    Task.SERVE: _("serve"),
}


class ChipFilter(FilterForm):
    text = forms.CharField(label=_("Name"), max_length=60)
    vendor = forms.ChoiceField(label=_("Maker"))
    kind = forms.ChoiceField(label=_("Kind"), choices=[("", _("all")), *KINDS.items()])
    here = forms.BooleanField(label=_("Only what the fleet has"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        titles = {name: one.profile().title for name, one in registry.chip_plugins().items()}
        self.choice("vendor").choices = [
            ("", _("all")),
            *sorted(titles.items(), key=lambda item: item[1].lower()),
        ]

    def narrow(self, known: Iterable[KnownChip]) -> list[KnownChip]:
        """Those of the chips that match every chosen value."""
        text = (self.chosen("text") or "").strip().lower()
        vendor, kind = self.chosen("vendor"), self.chosen("kind")
        return [
            one
            for one in known
            if vendor in (None, one.chip.vendor)
            and kind in (None, one.chip.kind)
            and (one.cards or not self.chosen("here"))
            and any(text in name for name in _names(one.chip))
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipList:
    """What the shared partial of filters reads; the list is short enough to have no pages."""

    filters: ChipFilter
    rows: list[dict[str, Any]]
    clear_href: str = "?"
    kept: tuple[tuple[str, str], ...] = ()

    @property
    def filtered(self) -> bool:
        return self.filters.in_use

    @property
    def ignored(self) -> list[str]:
        return self.filters.left_out


@login_required
def chips(request: HttpRequest) -> HttpResponse:
    """Every chip that a plug-in knows."""
    known = selectors.chips_known()
    filters = ChipFilter(request.GET)
    table = ChipList(filters=filters, rows=[_row(one) for one in filters.narrow(known)])
    context = {
        "table": table,
        "vendors": len({one.chip.vendor for one in known}),
        "total": len(known),
    }
    return render(request, "fleet/chips.html", context)


@login_required
def chip(request: HttpRequest, name: str) -> HttpResponse:
    """One chip; another of its names leads here."""
    known = selectors.chip_known(name)
    if known is None:
        raise Http404(f"no plug-in knows a chip called {name!r}")
    if known.chip.name != name:
        return redirect("chip", name=known.chip.name)
    one, profile = known.chip, known.profile
    code = request.GET.get("code", "").strip()[:60]
    context = {
        **_row(known),
        "figures": figures_of(one),
        "rates": rates_of(one),
        "given_out": given_out(one),
        "environment": registry.chip_plugin(one).environment(one, cards=(0, 1)),
        "layouts": [
            {"name": label, "given_out": given_out(geometry)}
            for label, geometry in profile.layouts.items()
        ],
        "metrics": _metrics(profile),
        "levels": _levels(profile),
        "code": code,
        "code_level": _level_of(profile, code),
        "engines": _engines(one),
        "aliases": sorted(one.aliases - {one.name}),
    }
    return render(request, "fleet/chip.html", context)


def _names(chip: Chip) -> set[str]:
    return {chip.name, chip.title.lower(), *chip.aliases}


def _row(known: KnownChip) -> dict[str, Any]:
    chip = known.chip
    return {
        "known": known,
        "chip": chip,
        "profile": known.profile,
        "kind": KINDS[chip.kind],
        "rate": next(
            (rate for rate in rates_of(chip) if rate.code in ("bfloat16", "float16")), None
        ),
        "unverified": [figure.label for figure in _unverified(chip)],
        "unknown": chip.confidence is Confidence.UNVERIFIED,
    }


def _unverified(chip: Chip) -> list[Figure]:
    return [figure for figure in figures_of(chip) if figure.unverified]


def _metrics(profile: VendorProfile) -> list[tuple[Promise | str, Series]]:
    """Which series each figure is read from."""
    series = profile.exporter.series if profile.exporter else {}
    return [(READINGS.get(name, name), one) for name, one in series.items()]


def _levels(profile: VendorProfile) -> list[dict[str, Any]]:
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


def _level_of(profile: VendorProfile, code: str) -> str:
    """What a code that somebody typed asks for, in words; empty where none was typed."""
    if not code:
        return ""
    upper = code if code in profile.faults.levels else code.upper().removeprefix("0X")
    level = profile.faults.level(upper)
    if upper in profile.faults.levels:
        return f"L{level.value} · {LEVELS[level]}"
    return gettext("not in the table: the card is isolated unless its maker calls it minor")


def _engines(chip: Chip) -> list[dict[str, Any]]:
    """What each installed engine does on it, or why not."""
    rows = []
    for name in registry.engine_names():
        engine = registry.engine(name)
        tasks = [task for task in _TASKS if task in engine.tasks]
        against = {task: engine.runs_on(task, chip) for task in tasks}
        rows.append(
            {
                "title": engine.profile().title,
                "does": [_TASKS[task] for task in tasks if not against[task]],
                "reasons": sorted({reason for reason in against.values() if reason}),
            }
        )
    return sorted(rows, key=lambda row: (not row["does"], str(row["title"]).lower()))
