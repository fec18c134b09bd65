"""Defragmentation plans: proposed, approved or dismissed by users, and the steps that execute them.

The steps are for the controller (``apps.quotas.reconcilers.defragmentation``): each is one transaction that leaves
rows from which the next run continues.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q

from apps.accounts.models import Team, User
from apps.accounts.services import record_audit_entry
from apps.fleet.models import Card
from apps.quotas.models import (
    Claim,
    Defragmentation,
    DefragmentationMove,
    DefragmentationTransition,
    MoveTransition,
    Nomination,
)
from apps.quotas.selectors import defragmentation as selectors
from apps.quotas.services.claims import claim_revoke
from controlplane.domain.common.reasons import Reason, ReasonedError
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.quotas.claims import ClaimState, ReleaseReason
from controlplane.domain.scheduling.defragmentation import (
    DefragmentationPlan,
    EmptyNodesGoal,
    FitClaimGoal,
    ReduceFragmentsGoal,
    plan_defragmentation,
)
from controlplane.domain.scheduling.defragmentation_runs import (
    ACTIVE,
    DEFRAGMENTATION,
    EVICTION_GRACE,
    IN_MOTION,
    NOMINATION_LIFETIME,
    PROPOSAL_LIFETIME,
    RELOCATION,
    RELOCATION_TIMEOUT,
    DefragmentationEvent,
    DefragmentationPurpose,
    DefragmentationState,
    RelocationEvent,
    RelocationState,
    RelocationStatus,
    assign_cards_to_relocations,
    card_uids_of_replicas,
    preview_relocated_nodes,
)
from controlplane.domain.scheduling.snapshots import SchedulingSnapshot
from controlplane.persistence.advisory_locks import AdvisoryLock, lock_in_transaction
from controlplane.persistence.state_transitions import apply_transition


class NoUsefulRelocation(ReasonedError):
    """No relocation would help, or none is worth its cost; the message says why."""


class DefragmentationPlanStale(ReasonedError):
    """The fleet has changed since the proposal; the message says which relocations are not possible any more."""


class DefragmentationInProgress(ReasonedError):
    """Another plan is being executed; two at a time would conflict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefragmentationRequest:
    """The goal of a defragmentation plan."""

    purpose: DefragmentationPurpose
    #: Number of idle nodes.
    nodes: int = 1
    #: Chip of idle nodes; empty for any.
    chip: str = ""
    #: The pending claim that needs the cards.
    claim: Claim | None = None


def defragmentation_preview(
    *, plan_request: DefragmentationRequest, at: datetime
) -> tuple[Defragmentation, list[DefragmentationMove]]:
    """Compute a plan and its relocations, as rows that are not stored.

    :raises NoUsefulRelocation: if no relocation helps, or none is worth its cost.
    """
    snapshot = selectors.defragmentation_snapshot()
    chip, plan = _build_plan(plan_request, snapshot, at)
    if not plan.moves:
        raise NoUsefulRelocation(plan.reason)
    moves, room = assign_cards_to_relocations(plan.moves, plan.room, snapshot, chip=chip)
    row = Defragmentation(
        purpose=plan_request.purpose,
        claim=plan_request.claim,
        chip=chip,
        reason=plan.reason,
        whole_before=plan.whole_before,
        whole_after=plan.whole_after,
        fragments_before=plan.fragments_before,
        fragments_after=plan.fragments_after,
        cost=plan.cost,
        gain=plan.gain,
        room=sorted(card_uids_of_replicas(room)),
        pictures=[asdict(picture) for picture in preview_relocated_nodes(snapshot, moves, room)],
    )
    claims = Claim.objects.select_related("team", "queue").filter(
        uid__in=[one.claim for one in moves]
    )
    claim_of = {claim.uid: claim for claim in claims}
    return row, [
        DefragmentationMove(
            defragmentation=row,
            number=number,
            claim=claim_of[one.claim],
            chip=one.chip,
            source=[asdict(replica) for replica in one.source],
            target=[asdict(replica) for replica in one.target],
            lost=one.lost.total_seconds(),
            cost=one.cost,
        )
        for number, one in enumerate(moves, 1)
    ]


def _build_plan(
    plan_request: DefragmentationRequest, snapshot: SchedulingSnapshot, at: datetime
) -> tuple[str, DefragmentationPlan]:
    if plan_request.claim is None:
        if plan_request.purpose is DefragmentationPurpose.WHOLE_NODES:
            asked = EmptyNodesGoal(nodes=plan_request.nodes, chip=plan_request.chip)
            return plan_request.chip, plan_defragmentation(snapshot, asked, at=at)
        return "", plan_defragmentation(snapshot, ReduceFragmentsGoal(), at=at)
    view = next((one for one in snapshot.claims if one.uid == plan_request.claim.uid), None)
    if view is None:
        raise NoUsefulRelocation("claim.state.not_pending", "the claim is no longer pending")
    plans = (
        (chip, plan_defragmentation(snapshot, FitClaimGoal(claim=view, chip=chip), at=at))
        for chip in view.chips
    )
    first = next(plans)
    return first if first[1].moves else next((one for one in plans if one[1].moves), first)


@transaction.atomic
def defragmentation_propose(
    *, plan_request: DefragmentationRequest, actor: User, at: datetime
) -> Defragmentation:
    """Store a plan that can be approved for a while.

    :raises NoUsefulRelocation: if no relocation helps, or none is worth its cost.
    :raises PermissionRefused: if the actor neither manages queues nor operates the fleet of any team.
    """
    selectors.require_permission_to_propose(actor)
    row, moves = defragmentation_preview(plan_request=plan_request, at=at)
    row.proposed_by, row.proposed_by_name = actor, actor.username
    row.expires_at = at + PROPOSAL_LIFETIME
    row.save()
    DefragmentationMove.objects.bulk_create(moves)
    _audit_defragmentation_plan(row, action="defragmentation_plan.propose", actor=actor)
    return row


@transaction.atomic
def defragmentation_approve(*, plan: Defragmentation, actor: User, at: datetime) -> None:
    """Approve the plan for execution by the controller.

    :raises PermissionRefused: if the actor may not relocate workloads of one of the teams.
    :raises IllegalTransition: if it is not in state proposed, or has expired.
    :raises DefragmentationInProgress: if another plan is approved and has not ended.
    :raises DefragmentationPlanStale: if the claims or cards have changed.
    """
    selectors.require_permission_to_relocate(actor, selectors.relocated_teams(plan))
    lock_in_transaction(AdvisoryLock.APPROVE_DEFRAGMENTATION)
    if plan.expires_at <= at and plan.state == DefragmentationState.PROPOSED:
        raise IllegalTransition(
            machine=DEFRAGMENTATION.name,
            state=DefragmentationState.EXPIRED,
            event=DefragmentationEvent.APPROVE,
        )
    other = Defragmentation.objects.filter(state__in=ACTIVE).exclude(pk=plan.pk).first()
    if other is not None:
        raise DefragmentationInProgress(
            "defragmentation.approval.another_running",
            "{plan} by {user} is in progress; approve this plan when it has ended",
            plan=str(other),
            user=other.proposed_by_name,
        )
    if changes := selectors.plan_blockers_since_proposal(plan):
        raise DefragmentationPlanStale(
            "defragmentation.approval.plan_outdated",
            "the fleet has changed since the proposal: {changes}. Create a new plan",
            changes="; ".join(changes),
        )
    defragmentation_transition(
        plan,
        DefragmentationEvent.APPROVE,
        at=at,
        reason=Reason("transition.by_user.approved", "approved by {user}", user=actor.username),
        actor=actor.username,
        approved_by_name=actor.username,
        approved_at=at,
    )
    _audit_defragmentation_plan(plan, action="defragmentation_plan.approve", actor=actor)


@transaction.atomic
def defragmentation_dismiss(*, plan: Defragmentation, actor: User, at: datetime) -> bool:
    """Dismiss the plan, or stop it after the current relocation; return whether it has ended.

    :raises PermissionRefused: if the actor neither proposed it nor may relocate workloads of each of the teams.
    :raises IllegalTransition: if it has ended already.
    """
    if plan.proposed_by_id != actor.pk:
        selectors.require_permission_to_relocate(actor, selectors.relocated_teams(plan))
    _audit_defragmentation_plan(plan, action="defragmentation_plan.dismiss", actor=actor)
    if plan.state == DefragmentationState.UNDER_WAY:
        Defragmentation.objects.filter(pk=plan.pk, stop_asked_at=None).update(
            stop_asked_at=at, stop_asked_by=actor.username
        )
        plan.refresh_from_db()
        return False
    defragmentation_transition(
        plan,
        DefragmentationEvent.DISMISS,
        at=at,
        reason=Reason("transition.by_user.dismissed", "dismissed by {user}", user=actor.username),
        actor=actor.username,
        ended_at=at,
    )
    return True


def _audit_defragmentation_plan(row: Defragmentation, *, action: str, actor: User) -> None:
    teams: Sequence[Team] = selectors.relocated_teams(row)
    record_audit_entry(
        row,
        actor=actor,
        action=action,
        team=teams[0] if len(teams) == 1 else None,
        name=row.reason,
        purpose=row.purpose,
        teams=[team.slug for team in teams],
    )


class RelocationNotPossible(ReasonedError):
    """The next step is not possible any more; the message says why."""


def defragmentation_begin(*, row: Defragmentation, at: datetime) -> None:
    """Begin execution: reserve the freed cards and the targets of all relocations.

    :raises RelocationNotPossible: if the claims or cards have changed.
    """
    moves = selectors.relocations_of(row)
    _lock_cards({*row.room, *(card for step in moves for card in _target_cards(step))})
    _require_plan_still_valid(row)
    defragmentation_cards_reserve(row=row, at=at)
    defragmentation_transition(
        row,
        DefragmentationEvent.BEGIN,
        at=at,
        reason=Reason("defragmentation.state.running", "relocating workloads"),
    )


def defragmentation_cards_reserve(*, row: Defragmentation, at: datetime) -> None:
    """Extend the reservations: freed cards for the claim or to keep nodes idle, targets for the workloads
    that are relocated there.
    """
    _reserve_freed_cards(row, at)
    for step in selectors.relocations_of(row):
        if step.state in (RelocationState.PLANNED, *IN_MOTION):
            _nominate_cards(
                _target_cards(step), until=at + NOMINATION_LIFETIME, work_uid=step.claim.work_uid
            )


def _reserve_freed_cards(row: Defragmentation, at: datetime) -> None:
    work_uid = "" if row.claim is not None else row.uid
    _nominate_cards(row.room, until=at + NOMINATION_LIFETIME, claim=row.claim, work_uid=work_uid)


def _target_cards(step: DefragmentationMove) -> set[str]:
    return card_uids_of_replicas(selectors.replica_placements_from_json(step.target))


def relocation_begin(*, step: DefragmentationMove, at: datetime) -> None:
    """Begin a relocation: evict the workload and reserve its target cards.

    :raises RelocationNotPossible: if this relocation, or a later one, is not possible any more.
    """
    _require_plan_still_valid(step.defragmentation)
    defragmentation_cards_reserve(row=step.defragmentation, at=at)
    explanation = Reason(
        "defragmentation.relocation.eviction",
        "relocated by a defragmentation plan: {reason}",
        reason=step.defragmentation.reason,
    )
    claim_revoke(
        claim=step.claim,
        reason=ReleaseReason.MOVED,
        grace=EVICTION_GRACE,
        at=at,
        explanation=explanation,
    )
    until = at + RELOCATION_TIMEOUT
    _transition_relocation(
        step,
        RelocationEvent.STOP,
        at=at,
        reason=Reason(
            "defragmentation.relocation.evicting",
            "evicting the workload with time to save a checkpoint",
        ),
        begun_at=at,
        until=until,
    )


def relocation_observed_status(*, step: DefragmentationMove, at: datetime) -> RelocationStatus:
    """The observed state of a relocation in progress."""
    claim = Claim.objects.get(pk=step.claim_id)
    successor = _successor_claim(step)
    return RelocationStatus(
        released=claim.state == ClaimState.RELEASED,
        successor=ClaimState(successor.state) if successor else None,
        late=step.until is not None and at > step.until,
    )


def relocation_advance(*, step: DefragmentationMove, event: RelocationEvent, at: datetime) -> None:
    """Record an event of a relocation in progress."""
    successor = _successor_claim(step)
    if event is RelocationEvent.LEAVE:
        _transition_relocation(
            step,
            event,
            at=at,
            reason=Reason(
                "defragmentation.relocation.stopped",
                "the workload has stopped and waits for the reserved cards",
            ),
            successor=successor,
        )
        return
    if event is RelocationEvent.LAND:
        reason = _relocation_result_reason(step, successor)
    elif event is RelocationEvent.END:
        reason = Reason(
            "defragmentation.relocation.workload_ended",
            "the workload has ended; its cards are free",
        )
    else:
        minutes = round(RELOCATION_TIMEOUT.total_seconds() / 60)
        reason = Reason(
            "defragmentation.relocation.timeout",
            "the workload did not restart on other cards within {minutes} min",
            minutes=minutes,
        )
    if event is not RelocationEvent.MISS:
        # A late workload may still get the cards until the reservation expires.
        _release_nominations(_target_cards(step), step.claim.work_uid, successor)
    _transition_relocation(step, event, at=at, reason=reason, successor=successor, ended_at=at)


def _relocation_result_reason(step: DefragmentationMove, successor: Claim | None) -> str:
    planned = {replica.node for replica in selectors.replica_placements_from_json(step.target)}
    placed = {replica["node"] for replica in successor.placement} if successor else set()
    if placed <= planned:
        return Reason(
            "defragmentation.relocation.finished", "workload restarted on the planned nodes"
        )
    return Reason(
        "defragmentation.relocation.other_nodes", "workload restarted, but not on the planned nodes"
    )


def defragmentation_end(
    *,
    row: Defragmentation,
    event: DefragmentationEvent,
    at: datetime,
    reason: str,
) -> None:
    """End the plan and drop relocations that have not begun. Cards freed for a claim stay reserved for a while."""
    for step in selectors.relocations_of(row).filter(state=RelocationState.PLANNED):
        _release_nominations(_target_cards(step), step.claim.work_uid, None)
        _transition_relocation(
            step,
            RelocationEvent.DROP,
            at=at,
            reason=Reason(
                "defragmentation.relocation.not_started", "the relocation has not started"
            ),
            ended_at=at,
        )
    if event is DefragmentationEvent.FINISH and row.claim is not None:
        _reserve_freed_cards(row, at)
    else:
        _release_nominations(row.room, row.uid, row.claim)
    defragmentation_transition(row, event, at=at, reason=reason, ended_at=at)


def _lock_cards(cards: Iterable[str]) -> None:
    """Lock the cards in the order of the scheduler."""
    rows = Card.objects.select_for_update(no_key=True).filter(uid__in=cards).order_by("uid")
    list(rows.values_list("pk", flat=True))


def _require_plan_still_valid(row: Defragmentation) -> None:
    if changes := selectors.plan_blockers_since_proposal(row):
        raise RelocationNotPossible(
            "defragmentation.plan.outdated",
            "the fleet has changed: {changes}",
            changes="; ".join(changes),
        )


def _nominate_cards(
    cards: Iterable[str], *, until: datetime, claim: Claim | None = None, work_uid: str = ""
) -> None:
    """Nominate those cards; nominations for others are kept."""
    mine = _nominated_for(work_uid, claim)
    Nomination.objects.filter(mine, card__uid__in=cards).update(until=until)
    Nomination.objects.bulk_create(
        (
            Nomination(card=card, claim=claim, work_uid=work_uid, until=until)
            for card in Card.objects.filter(uid__in=cards, nomination=None).order_by("uid")
        ),
        ignore_conflicts=True,
    )


def _release_nominations(cards: Iterable[str], work_uid: str, claim: Claim | None) -> None:
    Nomination.objects.filter(_nominated_for(work_uid, claim), card__uid__in=cards).delete()


def _nominated_for(work_uid: str, claim: Claim | None) -> Q:
    """Filter of nominations for the workload, or for the claim that it has created meanwhile."""
    mine = Q(claim=claim) if claim is not None else Q(pk=None)
    return mine | Q(work_uid=work_uid) | Q(claim__work_uid=work_uid) if work_uid else mine


def _successor_claim(step: DefragmentationMove) -> Claim | None:
    """The claim that resumes the workload."""
    later = Claim.objects.filter(work_uid=step.claim.work_uid, pk__gt=step.claim_id)
    return later.order_by("pk").first()


def _transition_relocation(
    step: DefragmentationMove, event: RelocationEvent, *, at: datetime, reason: str, **changes: Any
) -> None:
    apply_transition(step, RELOCATION, event, into=MoveTransition, at=at, reason=reason, **changes)


def defragmentation_transition(
    row: Defragmentation,
    event: DefragmentationEvent,
    *,
    at: datetime,
    reason: str,
    actor: str = "",
    **changes: Any,
) -> None:
    """One transition of the state machine; the reason is shown on the plan's page.

    :raises IllegalTransition: if the event is not allowed in the current state.
    """
    apply_transition(
        row,
        DEFRAGMENTATION,
        event,
        into=DefragmentationTransition,
        at=at,
        reason=reason,
        actor=actor,
        state_reason=reason,
        **changes,
    )
