"""Moves of running work: proposed, approved or dismissed by people, and the steps by which they are made.

The steps are for the loop (``apps.quotas.reconcilers.rearrangements``): each is one transaction that leaves rows
from which the next turn goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from django.db import transaction

from apps.accounts.models import Team, User
from apps.accounts.services import audit
from apps.quotas.models import (
    Claim,
    Rearrangement,
    RearrangementMove,
)
from apps.quotas.selectors import rearrangements as selectors
from apps.quotas.services.rearrangement_steps import rearrangement_move
from controlplane.domain.machines import IllegalTransition
from controlplane.domain.rearrangement_pictures import NodePicture, pictures
from controlplane.domain.rearrangements import (
    ACTIVE,
    PROPOSED_FOR,
    REARRANGEMENT,
    Purpose,
    RearrangementEvent,
    RearrangementState,
    cards_of,
    named,
)
from controlplane.domain.scheduling.defragmentation import (
    DefragmentationPlan,
    FewerFragments,
    RoomFor,
    WholeNodes,
    defragmentation,
)
from controlplane.domain.scheduling.snapshots import Snapshot
from controlplane.persistence.locks import AdvisoryLock, lock_in_transaction


class NothingToMove(Exception):
    """No moves would help, or none is worth it; says why."""


class RearrangementStale(Exception):
    """The fleet has changed since it was proposed; says which moves cannot be made any more."""


class AnotherUnderWay(Exception):
    """Two at a time would take each other's cards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What moves are to bring."""

    purpose: Purpose
    #: How many whole nodes.
    nodes: int = 1
    #: Of whole nodes; empty means any.
    chip: str = ""
    #: The waiting claim that is to have room.
    claim: Claim | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Moves that would fulfil a wish; nothing has been changed."""

    wish: Wish
    plan: DefragmentationPlan
    #: Of the room; empty where it is of any.
    chip: str
    pictures: tuple[NodePicture, ...]


def rearrangement_preview(*, wish: Wish, at: datetime) -> Proposal:
    """What would be proposed.

    :raises NothingToMove: if no moves help, or none is worth it.
    """
    snapshot = selectors.snapshot_to_rearrange()
    chip, plan = _planned(wish, snapshot, at)
    if not plan.moves:
        raise NothingToMove(plan.reason)
    moves, room = named(plan.moves, plan.room, snapshot, chip=chip)
    return Proposal(
        wish=wish,
        plan=replace(plan, moves=moves, room=room),
        chip=chip,
        pictures=pictures(snapshot, moves, room),
    )


def _planned(wish: Wish, snapshot: Snapshot, at: datetime) -> tuple[str, DefragmentationPlan]:
    if wish.claim is None:
        if wish.purpose is Purpose.WHOLE_NODES:
            asked = WholeNodes(nodes=wish.nodes, chip=wish.chip)
            return wish.chip, defragmentation(snapshot, asked, at=at)
        return "", defragmentation(snapshot, FewerFragments(), at=at)
    view = next((one for one in snapshot.claims if one.uid == wish.claim.uid), None)
    if view is None:
        raise NothingToMove("the claim does not wait any more")
    plans = (
        (chip, defragmentation(snapshot, RoomFor(claim=view, chip=chip), at=at))
        for chip in view.chips
    )
    first = next(plans)
    return first if first[1].moves else next((one for one in plans if one[1].moves), first)


@transaction.atomic
def rearrangement_propose(*, wish: Wish, actor: User, at: datetime) -> Rearrangement:
    """The proposal as a row that can be approved for a while.

    :raises NothingToMove: if no moves help, or none is worth it.
    :raises PermissionRefused: if the actor neither manages queues nor operates the fleet of any team.
    """
    selectors.require_proposing(actor)
    proposal = rearrangement_preview(wish=wish, at=at)
    plan = proposal.plan
    row = Rearrangement.objects.create(
        purpose=wish.purpose,
        claim=wish.claim,
        chip=proposal.chip,
        reason=plan.reason,
        whole_before=plan.whole_before,
        whole_after=plan.whole_after,
        fragments_before=plan.fragments_before,
        fragments_after=plan.fragments_after,
        cost=plan.cost,
        gain=plan.gain,
        room=sorted(cards_of(plan.room)),
        pictures=[asdict(picture) for picture in proposal.pictures],
        proposed_by=actor,
        proposed_by_name=actor.username,
        expires_at=at + PROPOSED_FOR,
    )
    claims = {
        claim.uid: claim
        for claim in Claim.objects.filter(uid__in=[one.claim for one in plan.moves])
    }
    RearrangementMove.objects.bulk_create(
        RearrangementMove(
            rearrangement=row,
            number=number,
            claim=claims[one.claim],
            chip=one.chip,
            source=[asdict(replica) for replica in one.source],
            target=[asdict(replica) for replica in one.target],
            lost=one.lost.total_seconds(),
            cost=one.cost,
        )
        for number, one in enumerate(plan.moves, 1)
    )
    _audit(row, "rearrangement.propose", actor)
    return row


@transaction.atomic
def rearrangement_approve(*, rearrangement: Rearrangement, actor: User, at: datetime) -> None:
    """Let the loop carry it out.

    :raises PermissionRefused: if the actor may not move the work of one of the teams.
    :raises IllegalTransition: if it is not proposed any more, or has expired.
    :raises AnotherUnderWay: if another one has been approved and has not ended.
    :raises RearrangementStale: if the claims or cards are not as they were.
    """
    selectors.require_moving(actor, selectors.teams_moved(rearrangement))
    lock_in_transaction(AdvisoryLock.APPROVE_REARRANGEMENT)
    if rearrangement.expires_at <= at and rearrangement.state == RearrangementState.PROPOSED:
        raise IllegalTransition(
            machine=REARRANGEMENT.name,
            state=RearrangementState.EXPIRED,
            event=RearrangementEvent.APPROVE,
        )
    other = Rearrangement.objects.filter(state__in=ACTIVE).exclude(pk=rearrangement.pk).first()
    if other is not None:
        raise AnotherUnderWay(
            f"{other} by {other.proposed_by_name} is being carried out; approve this one when it has ended"
        )
    if changes := selectors.changes_since(rearrangement):
        raise RearrangementStale(
            f"the fleet has changed since it was proposed: {'; '.join(changes)}. Propose it anew"
        )
    rearrangement_move(
        rearrangement,
        RearrangementEvent.APPROVE,
        at=at,
        reason=f"approved by {actor.username}",
        actor=actor.username,
        approved_by_name=actor.username,
        approved_at=at,
    )
    _audit(rearrangement, "rearrangement.approve", actor)


@transaction.atomic
def rearrangement_dismiss(*, rearrangement: Rearrangement, actor: User, at: datetime) -> bool:
    """Drop it, or have it end once the move that is in motion has landed; says whether it has ended.

    :raises PermissionRefused: if the actor neither proposed it nor may move the work of each of the teams.
    :raises IllegalTransition: if it has ended already.
    """
    if rearrangement.proposed_by_id != actor.pk:
        selectors.require_moving(actor, selectors.teams_moved(rearrangement))
    _audit(rearrangement, "rearrangement.dismiss", actor)
    if rearrangement.state == RearrangementState.UNDER_WAY:
        Rearrangement.objects.filter(pk=rearrangement.pk, stop_asked_at=None).update(
            stop_asked_at=at, stop_asked_by=actor.username
        )
        rearrangement.refresh_from_db()
        return False
    rearrangement_move(
        rearrangement,
        RearrangementEvent.DISMISS,
        at=at,
        reason=f"dismissed by {actor.username}",
        actor=actor.username,
        ended_at=at,
    )
    return True


def _audit(row: Rearrangement, action: str, actor: User) -> None:
    teams: Sequence[Team] = selectors.teams_moved(row)
    audit(
        actor=actor,
        action=action,
        team=teams[0] if len(teams) == 1 else None,
        uid=row.uid,
        name=row.reason,
        purpose=row.purpose,
        teams=[team.slug for team in teams],
    )
