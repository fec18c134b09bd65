"""Questions about other futures, and their answers as a reader may see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from apps.accounts import selectors as accounts
from apps.quotas.models import Claim, WhatIf
from apps.quotas.selectors.forecasts import Awaited, awaited_of
from apps.quotas.selectors.sights import Sight


def what_ifs_visible(user: accounts.Person) -> QuerySet[WhatIf]:
    """Those about claims of their teams; all for administrators of the company."""
    rows = WhatIf.objects.select_related("claim__team", "claim__queue", "queue", "person", "team")
    if accounts.is_company_administrator(user):
        return rows
    return rows.filter(team__in=accounts.teams_of(user))


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """When a claim starts in one of both futures."""

    starts_at: datetime | None
    earliest: datetime | None
    latest: datetime | None
    chip: str
    nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Concerned:
    """One claim in both futures."""

    work: Awaited
    #: How much earlier; negative if later; None where it starts in at most one of both.
    gained: timedelta | None
    #: None where it does not wait.
    before: Start | None
    after: Start | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the changes would do."""

    #: The claim that was asked about.
    own: Concerned | None
    earlier: tuple[Concerned, ...]
    later: tuple[Concerned, ...]
    #: Claims that run now and would have to stop.
    stopped: tuple[Concerned, ...]
    earlier_count: int
    later_count: int
    stopped_count: int
    #: Of those that wait, how many start within the horizon.
    starting_before: int
    starting_after: int
    waiting: int
    looked_at: int
    seconds: float


def answer_of(asked: WhatIf, *, sight: Sight) -> Answer | None:
    """None until there is one."""
    told: Mapping[str, Any] = asked.answer
    if not told:
        return None
    groups = ("earlier", "later", "stopped")
    uids = {each["claim"] for group in groups for each in told[group]}
    if told["own"]:
        uids.add(told["own"]["claim"])
    rows = Claim.objects.filter(uid__in=uids).select_related("team", "queue")
    claims = {claim.uid: claim for claim in rows}

    def concerned(each: Mapping[str, Any]) -> Concerned:
        return Concerned(
            work=awaited_of(claims[each["claim"]], sight=sight),
            gained=None if each["gained"] is None else timedelta(seconds=each["gained"]),
            before=_start(each["before"]),
            after=_start(each["after"]),
        )

    return Answer(
        own=concerned(told["own"]) if told["own"] else None,
        earlier=tuple(concerned(each) for each in told["earlier"]),
        later=tuple(concerned(each) for each in told["later"]),
        stopped=tuple(concerned(each) for each in told["stopped"]),
        earlier_count=told["earlier_count"],
        later_count=told["later_count"],
        stopped_count=told["stopped_count"],
        starting_before=told["starting_before"],
        starting_after=told["starting_after"],
        waiting=told["waiting"],
        looked_at=told["looked_at"],
        seconds=told["seconds"],
    )


def _start(told: Mapping[str, Any] | None) -> Start | None:
    if told is None:
        return None
    return Start(
        starts_at=_instant(told["starts_at"]),
        earliest=_instant(told["earliest"]),
        latest=_instant(told["latest"]),
        chip=told["chip"],
        nodes=told["nodes"],
    )


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
