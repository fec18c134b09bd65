"""What the scheduler would say to a claim that nobody makes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from apps.accounts.models import User
from apps.fleet.models import Node
from apps.quotas.models import Claim, Queue
from apps.quotas.selectors.policies import policy_now
from apps.quotas.selectors.queues import queues_alive
from apps.quotas.selectors.sights import sight_of
from apps.quotas.selectors.snapshots import snapshot
from controlplane.domain.claim_dry_runs import Outcome, dry_run
from controlplane.domain.claims import GangShape
from controlplane.domain.queue_previews import several_cycles
from controlplane.domain.scheduling.snapshots import ClaimView

#: Uid of the claim that there is not.
_NOBODYS = "dry-run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A claim as somebody would make it."""

    queue: Queue
    shape: GangShape
    #: The preferred first.
    chips: tuple[str, ...]
    priority: int = 0
    runtime: timedelta | None = None
    #: Level of the network under one domain of which all of it must be, and the same as a wish.
    within: str = ""
    near: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """Running work that would be told to stop."""

    claim: str
    queue: str
    team: str
    #: Empty where the person may not know.
    work_name: str
    chip: str
    cards: int
    lost_seconds: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What would become of the claim."""

    outcome: Outcome
    #: The chip that it would get; empty while it waits.
    chip: str = ""
    #: Names of nodes, each with the cards that it would get there.
    nodes: tuple[tuple[str, int], ...] = ()
    #: A short name of why it waits; empty if it starts.
    code: str = ""
    #: Why there, or why not now, in words.
    reason: str = ""
    stopped: tuple[Stopped, ...] = ()


def claim_dry_run(asked: Asked, *, person: User, at: datetime) -> Answer:
    """What the next cycle would say to the claim if it were made now. Nothing is touched."""
    with transaction.atomic():
        seen = snapshot()
    view = ClaimView(
        uid=_NOBODYS,
        queue=asked.queue.uid,
        shape=asked.shape,
        chips=asked.chips,
        priority=asked.priority,
        created_at=at,
        runtime=asked.runtime,
        within=asked.within,
        near=asked.near,
        person=person.username,
    )
    found = dry_run(seen, view, several_cycles(policy_now()), at=at)
    if found.placement is not None:
        placed = found.placement
        uids = [replica.node for replica in placed.replicas]
        names = dict(Node.objects.filter(uid__in=uids).values_list("uid", "name"))
        return Answer(
            outcome=found.outcome,
            chip=placed.chip,
            nodes=tuple((names[one.node], one.count or len(one.cards)) for one in placed.replicas),
            reason=placed.reason,
        )
    stopped = {one.claim.uid: one.reason for one in found.stopping}
    lost = {one.claim.uid: one.claim.lost_at(at) for one in found.stopping}
    return Answer(
        outcome=found.outcome,
        code=found.refusal.code if found.refusal else "",
        reason=found.refusal.reason if found.refusal else "",
        stopped=_stopped(stopped, lost, person),
    )


def _stopped(
    reasons: dict[str, str], lost: dict[str, timedelta], person: User
) -> tuple[Stopped, ...]:
    rows = Claim.objects.filter(uid__in=reasons).select_related("queue", "team").order_by("id")
    sight = sight_of(person, queues_alive())
    return tuple(
        Stopped(
            claim=row.uid,
            queue=row.queue.name,
            team=row.team.name,
            work_name=row.work_name if sight.names(row) else "",
            chip=row.chip,
            cards=row.card_count,
            lost_seconds=round(lost[row.uid].total_seconds()),
            reason=reasons[row.uid],
        )
        for row in rows
    )
