"""The report: who used what, and what did it cost?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.accounts.web.requests import SignedIn
from apps.quotas.selectors.usage_reports import (
    LONGEST_REPORT,
    Grouping,
    ReportRow,
    Rhythm,
    UsageReport,
    usage_report,
)
from apps.quotas.web import report_words as words
from controlplane.domain.usage import (
    HOUR_MICROSECONDS,
    Period,
    card_hours,
    month_before,
    month_of,
)
from controlplane.web import spreadsheets
from controlplane.web.tables import FilterForm

#: Rows that the page shows; the CSV has all.
MOST_SHOWN = 200
#: Lines of the chart: the most used chips, and all others together.
MOST_SERIES = 6
#: In that many days none has the name of another without its year.
_YEAR = 365


class ReportForm(FilterForm):
    """What the report is about, from the address."""

    range = forms.ChoiceField(
        label=gettext_lazy("When"),
        choices=[
            ("month", gettext_lazy("This month")),
            ("last", gettext_lazy("Last month")),
            ("days", gettext_lazy("Days …")),
        ],
    )
    first = forms.DateField(
        label=gettext_lazy("From"), widget=forms.DateInput(attrs={"type": "date"})
    )
    last = forms.DateField(label=gettext_lazy("To"), widget=forms.DateInput(attrs={"type": "date"}))
    by = forms.ChoiceField(
        label=gettext_lazy("Who or what"),
        choices=[(one.value, word) for one, word in words.GROUPINGS.items()],
    )
    per = forms.ChoiceField(
        label=gettext_lazy("Divided by time"),
        choices=[(one.value, word) for one, word in words.RHYTHMS.items()],
    )

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        first, last = given.get("first"), given.get("last")
        if first and last and last < first:
            self.add_error("last", _("it is before the first day"))
        elif first and last and (last - first).days >= LONGEST_REPORT:
            self.add_error(
                "last", _("a report spans at most %(days)d days") % {"days": LONGEST_REPORT}
            )
        return self.cleaned_data

    @property
    def custom(self) -> bool:
        return bool(self.chosen("range") == "days")

    @property
    def grouping(self) -> Grouping:
        return Grouping(self.chosen("by") or Grouping.TEAM)

    @property
    def rhythm(self) -> Rhythm:
        return Rhythm(self.chosen("per") or Rhythm.WHOLE)

    def period(self, *, today: date) -> Period:
        """The days that it is about; this month where the address names none that can be."""
        if self.chosen("range") == "last":
            return month_before(today)
        first, last = self.chosen("first"), self.chosen("last")
        if self.custom and first and last:
            return Period(first=first, last=last)
        return month_of(today)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row as the page shows it."""

    when: str
    name: str
    hours: str
    cost: str
    #: Which chips have no rate, where others have one.
    unrated: str
    #: In percent, for people and for the bar.
    share: float
    width: str


@login_required
def report(request: SignedIn) -> HttpResponseBase:
    """For members the use of their teams, for queue admins of their queues, for the company of all."""
    at = timezone.now()
    form = ReportForm(request.GET)
    by, per = form.grouping, form.rhythm
    found = usage_report(request.user, period=form.period(today=at.date()), by=by, per=per, at=at)
    if request.GET.get("format") == "csv":
        return spreadsheets.download(
            filename=f"usage-{found.period.first}-{found.period.last}.csv",
            head=_csv_head(by),
            lines=_csv_lines(found, by=by, per=per),
        )
    return render(request, "quotas/reports.html", _context(request, form, found))


def _context(request: SignedIn, form: ReportForm, found: UsageReport) -> Mapping[str, Any]:
    by, per = form.grouping, form.rhythm
    query = request.GET.urlencode()
    lines = [_line(row, by=by, per=per) for row in found.rows[:MOST_SHOWN]]
    return {
        "form": form,
        "fields": _fields(form, found.period),
        "report": found,
        "lines": lines,
        "more": len(found.rows) - len(lines),
        "what": words.GROUPINGS[by],
        "by_time": per is not Rhythm.WHOLE,
        "hours": words.hours(found.card_microseconds),
        "cost": words.money(found.cost),
        "unrated": words.unrated(found.cost),
        "cards": _cards_on_average(found),
        "chart": f"{reverse('usage-chart')}?{query}",
        "csv_href": f"?{query}&format=csv" if query else "?format=csv",
    }


def _fields(form: ReportForm, period: Period) -> list[forms.BoundField]:
    """The days can be chosen once somebody wants to; until then they are those of the month."""
    for name, value in (("first", period.first), ("last", period.last)):
        form.fields[name].widget.attrs["value"] = value.isoformat()
    return [
        field
        for field in form.visible_fields()
        if form.custom or field.name not in ("first", "last")
    ]


def _cards_on_average(found: UsageReport) -> float:
    """How many cards were held at once, from the first day until now or the last day's end."""
    span = found.period.span
    lasted = (min(span.until, found.at) - span.since).total_seconds()
    return found.card_microseconds / lasted / 1e6 if lasted > 0 else 0.0


def _line(row: ReportRow, *, by: Grouping, per: Rhythm) -> Line:
    return Line(
        when=words.when(row, per),
        name=words.name(row, by),
        hours=words.hours(row.card_microseconds),
        cost=words.money(row.cost),
        unrated=words.unrated(row.cost) if row.cost.known else "",
        share=100 * row.share,
        width=f"{100 * row.share:.2f}",
    )


def _csv_head(by: Grouping) -> list[str]:
    return [
        _("Time"),
        str(words.GROUPINGS[by]),
        _("Card-hours"),
        _("Card-microseconds"),
        _("Share"),
        _("Cost"),
        _("Currency"),
        _("Chips without a rate"),
    ]


def _csv_lines(found: UsageReport, *, by: Grouping, per: Rhythm) -> Iterator[list[object]]:
    for row in found.rows:
        yield [
            words.when(row, per) or f"{found.period.first}/{found.period.last}",
            words.name(row, by),
            str(card_hours(row.card_microseconds)),
            row.card_microseconds,
            round(row.share, 6),
            str(row.cost.amount) if row.cost.known else "",
            settings.NINEFOLD_CURRENCY,
            " ".join(row.cost.unrated),
        ]


@login_required
def chart(request: SignedIn) -> HttpResponse:
    """Card-hours on each day, by chip, as ``static/js/charts.js`` draws them."""
    at = timezone.now()
    form = ReportForm(request.GET)
    period = form.period(today=at.date())
    found = usage_report(request.user, period=period, by=Grouping.CHIP, per=Rhythm.WHOLE, at=at)
    days = [day for day in period.days if day <= at.date()]
    return JsonResponse(
        {
            "x": {"label": _("day"), "type": "category"},
            "y": {"label": _("Card-hours"), "unit": ""},
            "series": _series(found, days),
            "stacked": True,
            "ended": True,
        }
    )


def _series(found: UsageReport, days: list[date]) -> list[dict[str, Any]]:
    """One for each chip; the least used ones share the last."""
    names = list(found.days)
    shown = names if len(names) <= MOST_SERIES else names[: MOST_SERIES - 1]
    series = [_bars(chip, [found.days[chip]], days) for chip in shown]
    if rest := names[len(shown) :]:
        series.append(_bars(_("other chips"), [found.days[chip] for chip in rest], days))
    return series


def _bars(name: str, used: list[Mapping[date, int]], days: list[date]) -> dict[str, Any]:
    amounts = (sum(one.get(day, 0) for one in used) for day in days)
    return {
        "name": name,
        "kind": "bar",
        "x": [f"{day:%m-%d}" if len(days) <= _YEAR else day.isoformat() for day in days],
        "y": [round(amount / HOUR_MICROSECONDS, 3) for amount in amounts],
    }
