"""Claims in line, in the order in which the scheduler takes them, and claims that hold cards."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import cast

from django.db.models import CharField, F, Func, QuerySet, TextField, Value
from django.db.models.functions import Cast, Coalesce, Concat, LPad

from apps.accounts import selectors as accounts
from apps.fleet.models import Node
from apps.quotas.models import Claim
from apps.quotas.selectors.queues import queues_alive
from apps.quotas.selectors.sights import Sight, sight_of
from apps.quotas.selectors.snapshots import HOLDING
from controlplane.domain.claims import ClaimState

#: Since when a claim is in line: one that takes up revoked work keeps the place of the one before it.
SINCE = Coalesce("in_line_since", "created_at")
#: As ``controlplane.domain.scheduling.ordering`` has it within a queue: the more urgent, the older, then the uid.
IN_LINE = (F("priority").desc(), SINCE.asc(), F("uid").asc())
#: Larger than any priority.
_ABOVE_ALL = 2**31


def claims_of_sight(user: accounts.Person) -> tuple[QuerySet[Claim], Sight]:
    """Claims of which they may know everything, and what they see of the others."""
    sight = sight_of(user, queues_alive())
    claims = Claim.objects.select_related("team", "queue", "person")
    if not sight.company:
        claims = claims.filter(queue_id__in=sight.managed) | claims.filter(team_id__in=sight.teams)
    return claims, sight


def claims_waiting(queues: Collection[int]) -> QuerySet[Claim]:
    """Those that wait in these queues, with ``line``: text that sorts as the scheduler takes them."""
    return (
        Claim.objects.filter(state=ClaimState.PENDING, queue_id__in=queues)
        .select_related("team", "queue", "person", "forecast")
        .annotate(since=SINCE, line=_line())
    )


def claims_holding(queues: Collection[int]) -> QuerySet[Claim]:
    """Those that hold cards in these queues."""
    return Claim.objects.filter(state__in=HOLDING, queue_id__in=queues).select_related(
        "team", "queue", "person"
    )


def _line() -> Concat:
    urgency = LPad(Cast(Value(_ABOVE_ALL) - F("priority"), TextField()), 10, Value("0"))
    age = Func(SINCE, Value("YYYYMMDDHH24MISSUS"), function="to_char", output_field=CharField())
    return Concat(urgency, age, F("uid"), output_field=CharField())


def places_in(queues: Collection[int]) -> Mapping[int, int]:
    """The place of each claim that waits in these queues, from 1 in each queue, by primary key."""
    rows = (
        Claim.objects.filter(state=ClaimState.PENDING, queue_id__in=queues)
        .order_by(*IN_LINE)
        .values_list("pk", "queue_id")
    )
    reached: Counter[int] = Counter()
    places: dict[int, int] = {}
    for claim, queue in rows:
        reached[queue] += 1
        places[claim] = reached[queue]
    return places


def borrowing(queues: Collection[int], rights: Mapping[tuple[int, str], int]) -> frozenset[int]:
    """Primary keys of the claims that hold cards beyond what their queue is guaranteed.

    The more urgent and the older come first within the guarantee, as those behind them are stopped first.

    :param rights: cards that each queue is guaranteed, by its primary key and chip; absent means none.
    """
    rows = (
        Claim.objects.filter(state__in=HOLDING, queue_id__in=queues)
        .order_by("-priority", "admitted_at", "pk")
        .values_list("pk", "queue_id", "chip", "card_count")
    )
    held: dict[tuple[int, str], int] = defaultdict(int)
    beyond = set()
    for claim, queue, chip, cards in rows:
        held[queue, chip] += cards
        if held[queue, chip] > rights.get((queue, chip), 0):
            beyond.add(claim)
    return frozenset(beyond)


def nodes_by_uid(claims: Iterable[Claim]) -> Mapping[str, str]:
    """Names of the nodes on which these claims hold a place, by uid."""
    uids = {cast(str, part["node"]) for claim in claims for part in claim.placement}
    return dict(Node.objects.filter(uid__in=uids).values_list("uid", "name"))


def work_last(claim: Claim) -> Claim:
    """The newest claim of the same work: of what was revoked, the one that waits again."""
    if not claim.work_uid or claim.state != ClaimState.RELEASED:
        return claim
    newest = (
        Claim.objects.filter(work_kind=claim.work_kind, work_uid=claim.work_uid)
        .select_related("team", "queue", "person")
        .latest("id")
    )
    # Of a deployment many claims are for one work; only a live one goes on.
    return newest if newest.state != ClaimState.RELEASED else claim
