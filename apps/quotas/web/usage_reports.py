"""The usage report page: card-hours and cost by team, queue, user, chip or kind of workload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.quotas.selectors.usage import (
    MAX_REPORT_DAYS,
    UsageReport,
    UsageReportGrouping,
    UsageReportInterval,
    UsageReportRow,
    metered_usage_of_workload,
    usage_report,
)
from controlplane.domain.quotas.card_hours import (
    HOUR_MICROSECONDS,
    Cost,
    DayRange,
    card_hours,
    month_before,
    month_of,
)
from controlplane.web import downloads
from controlplane.web.tables import FilterForm

Label = str | Promise

GROUPING_LABELS: Mapping[UsageReportGrouping, Label] = {
    UsageReportGrouping.TEAM: gettext_lazy("Team"),
    UsageReportGrouping.QUEUE: gettext_lazy("Queue"),
    UsageReportGrouping.USER: gettext_lazy("User"),
    UsageReportGrouping.CHIP: gettext_lazy("Chip"),
    UsageReportGrouping.WORK: gettext_lazy("Workload type"),
}
INTERVAL_LABELS: Mapping[UsageReportInterval, Label] = {
    UsageReportInterval.WHOLE: gettext_lazy("total"),
    UsageReportInterval.MONTH: gettext_lazy("by month"),
    UsageReportInterval.DAY: gettext_lazy("by day"),
}
_WORK_LABELS: Mapping[str, Label] = {
    "job": gettext_lazy("Jobs"),
    "deployment": gettext_lazy("Deployments"),
    "": gettext_lazy("Other workloads"),
}


def format_card_hours(card_microseconds: int) -> str:
    """Card-hours with one decimal; with three below one, so that small amounts are visible."""
    amount = card_hours(card_microseconds)
    return f"{amount:,.1f}" if amount >= 1 else f"{amount:.3f}"


def format_cost(cost: Cost) -> str:
    """The amount with its currency; ``at least`` if a part has no rate, ``no rate`` if none has."""
    if not cost.known:
        return _("no card-hour rate")
    amount = {"currency": settings.NINEFOLD_CURRENCY, "amount": f"{cost.amount:,.2f}"}
    if cost.unrated:
        return _("at least %(currency)s %(amount)s") % amount
    return "{currency} {amount}".format(**amount)


def format_chips_without_rate(cost: Cost) -> str:
    """The chips without a rate; empty if all have one."""
    if not cost.unrated:
        return ""
    return _("no card-hour rate for %(chips)s") % {"chips": ", ".join(cost.unrated)}


def format_report_interval(row: UsageReportRow, per: UsageReportInterval) -> str:
    """The day or the month of a row in ISO 8601 format."""
    if row.when is None:
        return ""
    return row.when.isoformat() if per is UsageReportInterval.DAY else f"{row.when:%Y-%m}"


def usage_report_row_label(row: UsageReportRow, by: UsageReportGrouping) -> str:
    if by is UsageReportGrouping.WORK:
        return str(_WORK_LABELS.get(row.name, row.name))
    return row.name or _("unknown user")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadUsage:
    hours: str
    cost: str
    unrated: str


def workload_usage(work_uid: str, *, at: datetime) -> WorkloadUsage | None:
    """Formatted usage of that workload; None if it never had a card."""
    used = metered_usage_of_workload(work_uid, at=at)
    if used is None:
        return None
    return WorkloadUsage(
        hours=format_card_hours(used.card_microseconds),
        cost=format_cost(used.cost),
        unrated=format_chips_without_rate(used.cost),
    )


#: Maximum rows on the page; the CSV has all.
MAX_ROWS = 200
#: Maximum series of the chart: the most used chips, and all others together.
MAX_SERIES = 6
#: Up to this many days, month and day are unique without the year.
_YEAR = 365


class UsageReportForm(FilterForm):
    """Period, grouping and interval of a report, from the query string."""

    range = forms.ChoiceField(
        label=gettext_lazy("Time range"),
        choices=[
            ("month", gettext_lazy("This month")),
            ("last", gettext_lazy("Last month")),
            ("days", gettext_lazy("Custom range")),
        ],
    )
    first = forms.DateField(
        label=gettext_lazy("From date"), widget=forms.DateInput(attrs={"type": "date"})
    )
    last = forms.DateField(
        label=gettext_lazy("To date"), widget=forms.DateInput(attrs={"type": "date"})
    )
    by = forms.ChoiceField(
        label=gettext_lazy("Group by"),
        choices=[(one.value, label) for one, label in GROUPING_LABELS.items()],
    )
    per = forms.ChoiceField(
        label=gettext_lazy("Interval"),
        choices=[(one.value, label) for one, label in INTERVAL_LABELS.items()],
    )

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        first, last = given.get("first"), given.get("last")
        if first and last and last < first:
            self.add_error("last", _("The last day must not be before the first day."))
        elif first and last and (last - first).days >= MAX_REPORT_DAYS:
            self.add_error(
                "last", _("A report covers at most %(days)d days.") % {"days": MAX_REPORT_DAYS}
            )
        return self.cleaned_data

    @property
    def custom(self) -> bool:
        return bool(self.chosen("range") == "days")

    @property
    def grouping(self) -> UsageReportGrouping:
        return UsageReportGrouping(self.chosen("by") or UsageReportGrouping.TEAM)

    @property
    def interval(self) -> UsageReportInterval:
        return UsageReportInterval(self.chosen("per") or UsageReportInterval.WHOLE)

    def period(self, *, today: date) -> DayRange:
        """The period; this month if the query string has no valid one."""
        if self.chosen("range") == "last":
            return month_before(today)
        first, last = self.chosen("first"), self.chosen("last")
        if self.custom and first and last:
            return DayRange(first=first, last=last)
        return month_of(today)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReportTableRow:
    when: str
    name: str
    hours: str
    cost: str
    #: Chips without a rate, if others have one.
    unrated: str
    #: In percent, as text and as width of the bar.
    share: float
    width: str


@login_required
def usage_report_page(request: AuthenticatedRequest) -> HttpResponseBase:
    """Usage of the user's teams; for queue admins also of their queues; for company administrators of all."""
    at = timezone.now()
    form = UsageReportForm(request.GET)
    by, per = form.grouping, form.interval
    found = usage_report(request.user, period=form.period(today=at.date()), by=by, per=per, at=at)
    if request.GET.get("format") == "csv":
        return downloads.csv_download(
            filename=f"usage-{found.period.first}-{found.period.last}.csv",
            head=_csv_header(by),
            lines=_usage_report_csv_lines(found, by=by, per=per),
        )
    return render(request, "quotas/usage_report.html", _report_context(request, form, found))


def _report_context(
    request: AuthenticatedRequest, form: UsageReportForm, found: UsageReport
) -> Mapping[str, Any]:
    by, per = form.grouping, form.interval
    query = request.GET.urlencode()
    lines = [_usage_report_table_row(row, by=by, per=per) for row in found.rows[:MAX_ROWS]]
    return {
        "form": form,
        "fields": _filter_fields(form, found.period),
        "report": found,
        "lines": lines,
        "more": len(found.rows) - len(lines),
        "what": GROUPING_LABELS[by],
        "by_time": per is not UsageReportInterval.WHOLE,
        "hours": format_card_hours(found.card_microseconds),
        "cost": format_cost(found.cost),
        "unrated": format_chips_without_rate(found.cost),
        "cards": _average_allocated_cards(found),
        "chart": f"{reverse('usage-chart')}?{query}",
        "csv_href": f"?{query}&format=csv" if query else "?format=csv",
    }


def _filter_fields(form: UsageReportForm, period: DayRange) -> list[forms.BoundField]:
    """Filter fields; first and last day are shown only for a custom range."""
    for name, value in (("first", period.first), ("last", period.last)):
        form.fields[name].widget.attrs["value"] = value.isoformat()
    return [
        field
        for field in form.visible_fields()
        if form.custom or field.name not in ("first", "last")
    ]


def _average_allocated_cards(found: UsageReport) -> float:
    """Average of allocated cards, from the first day until now or the end of the last day."""
    span = found.period.span
    lasted = (min(span.until, found.at) - span.since).total_seconds()
    return found.card_microseconds / lasted / 1e6 if lasted > 0 else 0.0


def _usage_report_table_row(
    row: UsageReportRow, *, by: UsageReportGrouping, per: UsageReportInterval
) -> UsageReportTableRow:
    return UsageReportTableRow(
        when=format_report_interval(row, per),
        name=usage_report_row_label(row, by),
        hours=format_card_hours(row.card_microseconds),
        cost=format_cost(row.cost),
        unrated=format_chips_without_rate(row.cost) if row.cost.known else "",
        share=100 * row.share,
        width=f"{100 * row.share:.2f}",
    )


def _csv_header(by: UsageReportGrouping) -> list[str]:
    return [
        _("Time"),
        str(GROUPING_LABELS[by]),
        _("Card-hours"),
        _("Card-microseconds"),
        _("Share"),
        _("Cost"),
        _("Currency"),
        _("Chips without a rate"),
    ]


def _usage_report_csv_lines(
    found: UsageReport, *, by: UsageReportGrouping, per: UsageReportInterval
) -> Iterator[list[object]]:
    for row in found.rows:
        yield [
            format_report_interval(row, per) or f"{found.period.first}/{found.period.last}",
            usage_report_row_label(row, by),
            str(card_hours(row.card_microseconds)),
            row.card_microseconds,
            round(row.share, 6),
            str(row.cost.amount) if row.cost.known else "",
            settings.NINEFOLD_CURRENCY,
            " ".join(row.cost.unrated),
        ]


@login_required
def usage_report_chart(request: AuthenticatedRequest) -> HttpResponse:
    """Card-hours per day and chip as JSON for ``static/js/charts.js``."""
    at = timezone.now()
    form = UsageReportForm(request.GET)
    period = form.period(today=at.date())
    found = usage_report(
        request.user,
        period=period,
        by=UsageReportGrouping.CHIP,
        per=UsageReportInterval.WHOLE,
        at=at,
    )
    days = [day for day in period.days if day <= at.date()]
    return JsonResponse(
        {
            "x": {"label": _("day"), "type": "category"},
            "y": {"label": _("Card-hours"), "unit": ""},
            "series": _chart_series(found, days),
            "stacked": True,
            "ended": True,
        }
    )


def _chart_series(found: UsageReport, days: list[date]) -> list[dict[str, Any]]:
    """A series per chip; the least used chips share the last."""
    names = list(found.days)
    shown = names if len(names) <= MAX_SERIES else names[: MAX_SERIES - 1]
    series = [_chart_bars(chip, [found.days[chip]], days) for chip in shown]
    if rest := names[len(shown) :]:
        series.append(_chart_bars(_("other chips"), [found.days[chip] for chip in rest], days))
    return series


def _chart_bars(name: str, used: list[Mapping[date, int]], days: list[date]) -> dict[str, Any]:
    amounts = (sum(one.get(day, 0) for one in used) for day in days)
    return {
        "name": name,
        "kind": "bar",
        "x": [f"{day:%m-%d}" if len(days) <= _YEAR else day.isoformat() for day in days],
        "y": [round(amount / HOUR_MICROSECONDS, 3) for amount in amounts],
    }
