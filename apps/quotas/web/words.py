"""Words of the pages about queues and claims."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from apps.quotas.models import Claim
from apps.quotas.selectors.forecasts import Outlook
from apps.quotas.selectors.sights import Sight

#: What each number beside a reason is; see ``controlplane.domain.scheduling.explain`` and ``obstacles``.
NUMBERS: Mapping[str, str | Promise] = {
    "wanted": lazy("Cards that it needs"),
    "used": lazy("Cards that the queue holds"),
    "cap": lazy("Most that the queue may hold"),
    "guaranteed": lazy("Cards that the queue is guaranteed"),
    "kept": lazy("Cards kept for others"),
    "free": lazy("Cards that are free"),
    "lendable": lazy("Of those, cards that may be borrowed"),
    "cards": lazy("Cards"),
    "claims": lazy("Claims that were told to stop"),
    "nodes": lazy("Nodes"),
    "placed": lazy("Claims that the cycle placed first"),
    "looked_at": lazy("Searches for room before it"),
    "largest_node": lazy("Cards of the largest node"),
    "best": lazy("Replicas that would fit at best"),
    "best_node": lazy("Free cards on the best node"),
    "replicas": lazy("Replicas"),
    "total": lazy("Cards of the kind in all"),
    "running": lazy("Claims that run"),
    "limit": lazy("Most that one person may run at once"),
}


def numbers_of(claim: Claim) -> list[tuple[str | Promise, object]]:
    """The numbers of its reason with a word for each, in the order of the reason."""
    return [
        (NUMBERS.get(name, name.replace("_", " ")), value)
        for name, value in claim.explanation_numbers.items()
    ]


def clock(at: datetime, *, now: datetime) -> str:
    """``14:20`` today, ``22 Nov, 14:20`` on another day; in UTC, as every time on a page."""
    local, today = at.astimezone(UTC), now.astimezone(UTC)
    hour = date_format(local, "H:i")
    if local.date() == today.date():
        return hour
    return _("%(day)s, %(hour)s") % {"day": date_format(local, "MONTH_DAY_FORMAT"), "hour": hour}


def outlook_in_words(told: Outlook, *, now: datetime) -> str:
    """``Starts about 14:20 UTC, between 13:50 and 15:10.``"""
    if told.unseen:
        return _("Too many wait before it for a forecast to have come to it.")
    if told.starts_at is None:
        return _("Does not start within the day that was looked at.")
    when = f"{clock(told.starts_at, now=now)} UTC"
    if told.starts_at <= now + timedelta(minutes=1):
        return _("It is next: there is room for it.")
    if told.earliest is None or told.earliest == told.latest:
        return _("Starts about %(when)s.") % {"when": when}
    since = clock(told.earliest, now=now)
    if told.latest is None:
        return _(
            "Starts about %(when)s, not before %(since)s; if work runs long, after the day."
        ) % {
            "when": when,
            "since": since,
        }
    return _("Starts about %(when)s, between %(since)s and %(until)s.") % {
        "when": when,
        "since": since,
        "until": clock(told.latest, now=now),
    }


def outlook_brief(claim: Claim, *, now: datetime) -> str:
    """When the claim of a list starts, in one cell; empty where nobody knows."""
    told = getattr(claim, "forecast", None)
    if told is None:
        return ""
    if told.starts_at is None:
        return _("not within a day")
    return _("about %(when)s") % {"when": f"{clock(told.starts_at, now=now)} UTC"}


def name_of(claim: Claim, *, sight: Sight) -> str:
    """How the work is called before that reader; of other teams only whose it is."""
    if sight.names(claim):
        return claim.work_name or claim.owner_uid[:8]
    return _("team %(team)s") % {"team": claim.team.name}
