"""What the report says of amounts, money and names, in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.quotas.selectors.usage import usage_of_work
from apps.quotas.selectors.usage_reports import Grouping, ReportRow, Rhythm
from controlplane.domain.usage import Cost, card_hours

Word = str | Promise

GROUPINGS: Mapping[Grouping, Word] = {
    Grouping.TEAM: gettext_lazy("Team"),
    Grouping.QUEUE: gettext_lazy("Queue"),
    Grouping.PERSON: gettext_lazy("Person"),
    Grouping.CHIP: gettext_lazy("Chip"),
    Grouping.WORK: gettext_lazy("Kind of work"),
}
RHYTHMS: Mapping[Rhythm, Word] = {
    Rhythm.WHOLE: gettext_lazy("not divided"),
    Rhythm.MONTH: gettext_lazy("by month"),
    Rhythm.DAY: gettext_lazy("by day"),
}
_WORKS: Mapping[str, Word] = {
    "job": gettext_lazy("Jobs"),
    "deployment": gettext_lazy("Deployments"),
    "": gettext_lazy("Other work"),
}


def hours(card_microseconds: int) -> str:
    """Card-hours with one digit; with three below one, so that little is not nothing."""
    amount = card_hours(card_microseconds)
    return f"{amount:,.1f}" if amount >= 1 else f"{amount:.3f}"


def money(cost: Cost) -> str:
    """The amount with its currency; ``at least`` where a part has no rate, and that there is none."""
    if not cost.known:
        return _("no rate")
    amount = {"currency": settings.NINEFOLD_CURRENCY, "amount": f"{cost.amount:,.2f}"}
    if cost.unrated:
        return _("at least %(currency)s %(amount)s") % amount
    return "{currency} {amount}".format(**amount)


def unrated(cost: Cost) -> str:
    """Which chips have no rate; empty if all have one."""
    if not cost.unrated:
        return ""
    return _("no rate for %(chips)s") % {"chips": ", ".join(cost.unrated)}


def when(row: ReportRow, per: Rhythm) -> str:
    """The day or the month of a row, as ISO 8601 has it."""
    if row.when is None:
        return ""
    return row.when.isoformat() if per is Rhythm.DAY else f"{row.when:%Y-%m}"


def name(row: ReportRow, by: Grouping) -> str:
    if by is Grouping.WORK:
        return str(_WORKS.get(row.name, row.name))
    return row.name or _("nobody known")


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What a job or a deployment used, for its page."""

    hours: str
    cost: str
    unrated: str


def used_by(work_uid: str, *, at: datetime) -> Used | None:
    """None if it never held a card."""
    used = usage_of_work(work_uid, at=at)
    if used is None:
        return None
    return Used(
        hours=hours(used.card_microseconds), cost=money(used.cost), unrated=unrated(used.cost)
    )
