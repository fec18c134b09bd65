"""When claims will probably start: what a forecast starts from, and what it came to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from apps.quotas.models import Claim, ClaimForecast, ForecastRun
from apps.quotas.selectors.policies import policy_now
from apps.quotas.selectors.sights import Sight
from apps.quotas.selectors.snapshots import claim_view
from controlplane.domain.claims import ClaimState, ReleaseReason
from controlplane.domain.scheduling.accounts import nominated, queue_tree
from controlplane.domain.scheduling.forecast import Assumptions
from controlplane.domain.scheduling.ordering import Order
from controlplane.domain.scheduling.runtimes import PastRun, RuntimeHistory
from controlplane.domain.scheduling.snapshots import ClaimView, Snapshot

#: How far forecasts look ahead.
HORIZON = timedelta(days=1)
#: Runs that ended within this time are examples of how long work runs, the newest so many.
PAST = timedelta(days=28)
MOST_PAST_RUNS = 5000
#: Ends that are closer together are taken together: of few claims, and of many.
GRAIN, COARSE_GRAIN, FEW = timedelta(minutes=1), timedelta(minutes=10), 100
#: Most cycles of a play: enough for a day in coarse grains.
CYCLES = 150
#: Claims of yesterday that are expected to come again.
MOST_ARRIVALS = 500
#: Claims of one queue that are looked at, the first in line; and of all queues together.
MOST_OF_A_QUEUE = 200
MOST_LOOKED_AT = 2000


def assumptions_at(at: datetime, *, claims: int) -> Assumptions:
    """What a forecast takes for granted: work runs as long as work ran, and as much comes as yesterday.

    :param claims: how many are looked at; of many less exactly, so that the day is still played to its end.
    """
    return Assumptions(
        horizon=HORIZON,
        grain=GRAIN if claims <= FEW else COARSE_GRAIN,
        cycles=CYCLES,
        runtimes=RuntimeHistory(_past_runs(at)),
        arrivals=_arrivals(at),
        grace=policy_now().grace,
    )


def _past_runs(at: datetime) -> list[PastRun]:
    rows = (
        Claim.objects.filter(
            state=ClaimState.RELEASED,
            release_reason=ReleaseReason.FINISHED,
            released_at__gt=at - PAST,
            admitted_at__isnull=False,
        )
        .order_by("-id")
        .values_list("queue__uid", "card_count", "admitted_at", "released_at")[:MOST_PAST_RUNS]
    )
    return [
        PastRun(queue=queue, cards=cards, runtime=max(timedelta(0), until - since))
        for queue, cards, since, until in rows
        if since and until
    ]


def _arrivals(at: datetime) -> tuple[ClaimView, ...]:
    """What came within the last day comes once more, a day later."""
    rows = (
        Claim.objects.filter(
            created_at__gt=at - timedelta(days=1),
            created_at__lte=at,
            # What takes up revoked work did not come from outside.
            in_line_since=None,
            queue__retired_at=None,
        )
        .select_related("queue")
        .order_by("-id")[:MOST_ARRIVALS]
    )
    return tuple(
        replace(
            claim_view(claim),
            uid=f"tomorrow-{claim.uid}",
            created_at=claim.created_at + timedelta(days=1),
        )
        for claim in rows
    )


def in_order(snapshot: Snapshot) -> tuple[str, ...]:
    """Uids of all that wait, in the order in which the scheduler takes them as things are now."""
    return tuple(
        claim.uid for claim in Order(snapshot.claims, queue_tree(snapshot, nominated(snapshot)))
    )


def looked_at(
    snapshot: Snapshot, order: Sequence[str], *, always: Collection[str] = (), most: int
) -> Snapshot:
    """The snapshot with no more of what waits than a forecast can look at: the first of each queue.

    :param always: uids that are kept in any case.
    :param most: claims in all.
    """
    queue_of = {claim.uid: claim.queue for claim in snapshot.claims}
    of_queue: dict[str, int] = defaultdict(int)
    kept = set(always)
    for uid in order:
        if len(kept) >= most:
            break
        of_queue[queue_of[uid]] += 1
        if of_queue[queue_of[uid]] <= MOST_OF_A_QUEUE:
            kept.add(uid)
    claims = tuple(claim for claim in snapshot.claims if claim.uid in kept)
    return replace(snapshot, claims=claims)


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """Somebody whose end a claim waits for."""

    #: What the work is called; empty where only the team may be told.
    name: str
    team: str
    cards: int
    work_kind: str = ""
    work_uid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """When a claim starts, as a reader may be told."""

    starts_at: datetime | None = None
    earliest: datetime | None = None
    latest: datetime | None = None
    chip: str = ""
    nodes: int = 0
    waits_for: tuple[Awaited, ...] = ()
    #: How many others beside those.
    others: int = 0
    made_at: datetime | None = None
    #: It was looked at, but does not start within ``HORIZON``.
    beyond: bool = False
    #: Too many wait before it to be looked at.
    unseen: bool = False
    #: Among all that wait, in the order of the scheduler; None where nobody knows.
    place: int | None = None


#: Names that one outlook tells.
_MOST_NAMED = 4


def outlook_of(claim: Claim, *, sight: Sight) -> Outlook | None:
    """What the last forecast says of a claim that waits; None while nobody has looked."""
    told = ClaimForecast.objects.filter(claim=claim).first()
    if told is None:
        run = ForecastRun.objects.first()
        if run is None or run.at < claim.created_at:
            return None
        return Outlook(unseen=True, made_at=run.at)
    named = told.waits_for[:_MOST_NAMED]
    rows = {
        row.uid: row for row in Claim.objects.filter(uid__in=named).select_related("team", "queue")
    }
    awaited = tuple(awaited_of(rows[uid], sight=sight) for uid in named if uid in rows)
    return Outlook(
        starts_at=told.starts_at,
        earliest=told.earliest,
        latest=told.latest,
        chip=told.chip,
        nodes=len(told.nodes),
        waits_for=awaited,
        others=len(told.waits_for) - len(awaited),
        made_at=told.made_at,
        beyond=told.starts_at is None,
        place=told.place,
    )


def awaited_of(claim: Claim, *, sight: Sight) -> Awaited:
    """How a claim is called before that reader."""
    if not sight.names(claim):
        return Awaited(name="", team=claim.team.name, cards=claim.card_count)
    return Awaited(
        name=claim.work_name or claim.owner_uid[:8],
        team=claim.team.name,
        cards=claim.card_count,
        work_kind=claim.work_kind,
        work_uid=claim.work_uid,
    )


def last_run() -> ForecastRun | None:
    """The newest look ahead."""
    return ForecastRun.objects.first()
