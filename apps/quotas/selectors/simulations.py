"""Simulated scheduling with a hypothetical claim: dry runs of claims, and reclaim previews of queues."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import transaction

from apps.accounts.models import User
from apps.fleet.models import Node
from apps.quotas.models import Claim, Queue
from apps.quotas.selectors.forecasts import WorkloadSummary, workload_summary
from apps.quotas.selectors.queues import QueueVisibility, queue_visibility_of, queues_active
from apps.quotas.selectors.scheduling_cycles import current_scheduling_policy
from apps.quotas.selectors.snapshots import scheduling_snapshot
from controlplane.domain.quotas.claims import GangShape, RoleShape
from controlplane.domain.scheduling.plans import ClaimEviction, SchedulingPolicy, cards_of_replicas
from controlplane.domain.scheduling.queue_change_preview import queue_preview_policy
from controlplane.domain.scheduling.snapshots import ClaimSnapshot, SchedulingSnapshot
from controlplane.domain.scheduling.what_if import DryRunOutcome, dry_run_claim

#: Uid of the hypothetical claim.
_DRY_RUN_UID = "dry-run"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimDryRunRequest:
    """The hypothetical claim of a dry run."""

    queue: Queue
    shape: GangShape
    #: The preferred first.
    chips: tuple[str, ...]
    priority: int = 0
    runtime: timedelta | None = None
    #: Network level within one domain of which all replicas must be, and the same as a preference.
    within: str = ""
    near: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptedWorkload:
    """A running workload that would be preempted."""

    claim: str
    work: WorkloadSummary
    queue: str
    chip: str
    cards: int
    #: Work since its last checkpoint, which would be repeated.
    lost: timedelta
    reason: str
    #: Uid of the claim that gets its cards.
    beneficiary: str

    @property
    def lost_seconds(self) -> int:
        return round(self.lost.total_seconds())

    @property
    def lost_card_hours(self) -> float:
        return self.cards * self.lost.total_seconds() / 3600


class NodeCardCount(NamedTuple):
    """A number of cards of the node of that name."""

    node: str
    cards: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimDryRunResult:
    """The scheduler's decision on the claim."""

    outcome: DryRunOutcome
    #: The chip that it would get; empty if it would be pending.
    chip: str = ""
    nodes: tuple[NodeCardCount, ...] = ()
    #: Code of the reason why it would be pending; empty if it starts.
    code: str = ""
    #: Reason of the placement, or why it would be pending.
    reason: str = ""
    stopped: tuple[PreemptedWorkload, ...] = ()


def claim_dry_run(request: ClaimDryRunRequest, *, user: User, at: datetime) -> ClaimDryRunResult:
    """The decision of the next cycle on the claim if it were created now. Changes nothing."""
    with transaction.atomic():
        current = scheduling_snapshot()
    view = ClaimSnapshot(
        uid=_DRY_RUN_UID,
        queue=request.queue.uid,
        shape=request.shape,
        chips=request.chips,
        priority=request.priority,
        created_at=at,
        runtime=request.runtime,
        within=request.within,
        near=request.near,
        user=user.username,
    )
    found = dry_run_claim(current, view, queue_preview_policy(current_scheduling_policy()), at=at)
    if found.placement is not None:
        placed = found.placement
        uids = [replica.node for replica in placed.replicas]
        names = dict(Node.objects.filter(uid__in=uids).values_list("uid", "name"))
        return ClaimDryRunResult(
            outcome=found.outcome,
            chip=placed.chip,
            nodes=tuple(
                NodeCardCount(names[one.node], one.count or len(one.cards))
                for one in placed.replicas
            ),
            reason=placed.reason,
        )
    return ClaimDryRunResult(
        outcome=found.outcome,
        code=found.refusal.code if found.refusal else "",
        reason=found.refusal.reason if found.refusal else "",
        stopped=preempted_workloads(
            found.stopping, current, visibility=queue_visibility_of(user, queues_active()), at=at
        ),
    )


def preempted_workloads(
    evictions: Iterable[ClaimEviction],
    snapshot: SchedulingSnapshot,
    *,
    visibility: QueueVisibility,
    at: datetime,
) -> tuple[PreemptedWorkload, ...]:
    """The workloads of those claims of the snapshot in order of creation, as far as a reader may see them."""
    found = {each.claim: each for each in evictions}
    running = {view.uid: view for view in snapshot.running}
    rows = Claim.objects.filter(uid__in=found).select_related("queue", "team").order_by("id")
    return tuple(
        PreemptedWorkload(
            claim=row.uid,
            work=workload_summary(row, visibility=visibility),
            queue=row.queue.name,
            chip=row.chip,
            cards=cards_of_replicas(running[row.uid].replicas),
            lost=running[row.uid].lost_at(at),
            reason=found[row.uid].reason,
            beneficiary=found[row.uid].beneficiary,
        )
        for row in rows
    )


#: Uid of the hypothetical claim of a reclaim preview.
_HYPOTHETICAL_UID = "imagined"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimRequest:
    """A number of cards of a chip, in groups of ``together`` cards on one node."""

    queue: Queue
    chip: str
    cards: int
    together: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimPreview:
    reclaim_request: ReclaimRequest
    #: It would start at once on free cards.
    starts: bool
    #: Reason of the placement, of the preemption, or why it would be pending.
    reason: str
    losers: tuple[PreemptedWorkload, ...]

    @property
    def cards(self) -> int:
        """Cards that would be reclaimed."""
        return sum(victim.cards for victim in self.losers)


def reclaim_preview(
    reclaim_request: ReclaimRequest,
    *,
    visibility: QueueVisibility,
    policy: SchedulingPolicy,
    at: datetime,
) -> ReclaimPreview:
    """Workloads that would be preempted if the queue requested the cards now, without other pending claims."""
    with transaction.atomic():
        current = scheduling_snapshot()
    claim = _hypothetical_claim(reclaim_request, at=at)
    found = dry_run_claim(replace(current, claims=()), claim, policy, at=at)
    decided = found.placement or found.refusal
    losers = preempted_workloads(found.stopping, current, visibility=visibility, at=at)
    return ReclaimPreview(
        reclaim_request=reclaim_request,
        starts=found.placement is not None,
        reason=decided.reason if decided else "",
        losers=tuple(sorted(losers, key=lambda victim: (-victim.cards, victim.claim))),
    )


def _hypothetical_claim(reclaim_request: ReclaimRequest, *, at: datetime) -> ClaimSnapshot:
    role = RoleShape(
        name="worker",
        replicas=reclaim_request.cards // reclaim_request.together,
        cards=reclaim_request.together,
    )
    return ClaimSnapshot(
        uid=_HYPOTHETICAL_UID,
        queue=reclaim_request.queue.uid,
        shape=GangShape(roles=(role,)),
        chips=(reclaim_request.chip,),
        priority=0,
        created_at=at,
    )
