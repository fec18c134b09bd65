"""Those that a plan, or a fault, takes cards back from are told to save and stop."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from apps.quotas.models import Allocation, Claim, ClaimTransition
from apps.quotas.selectors.snapshots import queues_locked
from controlplane.domain.claims import CLAIM, ClaimEvent, ClaimState, ReleaseReason
from controlplane.domain.scheduling.plans import Revocation
from controlplane.domain.scheduling.snapshots import QueueView
from controlplane.outbox.messages import publish_each
from controlplane.persistence.moves import Step, move_each


@transaction.atomic
def claims_revoke(
    *,
    revocations: Sequence[Revocation],
    queues: Mapping[str, QueueView],
    grace: timedelta,
    at: datetime,
) -> tuple[str, ...]:
    """Tell each claim to stop for its beneficiary; the uids of those that were told.

    Left alone are claims whose beneficiary no longer waits, and those that stop or have stopped anyway. All are
    where the queues are not as they were planned with: what is owed to whom is for the next cycle to say.

    :param queues: that the plan was made with.
    """
    uids = {uid for each in revocations for uid in (each.claim, each.beneficiary)}
    rows = Claim.objects.select_for_update(no_key=True, of=("self",)).filter(uid__in=uids)
    claims = {claim.uid: claim for claim in rows.order_by("uid")}
    if not _as_they_were(queues):
        return ()
    steps = []
    for revocation in revocations:
        victim, heir = claims.get(revocation.claim), claims.get(revocation.beneficiary)
        if victim is None or victim.state != ClaimState.ADMITTED or not victim.preemptible:
            continue
        if heir is None or heir.state != ClaimState.PENDING:
            continue
        changes = {
            "release_reason": ReleaseReason.PREEMPTED,
            "revoke_by": at + grace,
            "revoked_for": heir,
        }
        steps.append(Step(row=victim, reason=revocation.reason, changes=changes))
    move_each(steps, CLAIM, ClaimEvent.REVOKE, into=ClaimTransition, at=at, locked=True)
    publish_each("claim.revoking", ({"claim_uid": step.row.uid} for step in steps))
    return tuple(step.row.uid for step in steps)


@transaction.atomic
def claims_withdraw(
    *,
    cards: Mapping[int, str],
    nodes: Mapping[str, str],
    grace: timedelta,
    at: datetime,
    reason: ReleaseReason = ReleaseReason.FAULT,
    kinds: Collection[str] = (),
) -> tuple[Claim, ...]:
    """Tell every claim that holds one of these cards, or a place on one of these nodes, to stop: the whole gang.

    For the transaction that takes the cards out of use, under their locks, so that nobody comes to hold one
    meanwhile. What stops already gets no more time than this. The cards stay held until its owner has released.

    :param cards: primary key → why.
    :param nodes: uid → why; claims that hold none of its cards but run there are told too.
    :param kinds: of work, such as ``job``; empty means all.
    :return: those that were told now.
    """
    holding = Allocation.objects.filter(card__in=cards, released_at=None)
    why_of = {claim: cards[card] for claim, card in holding.values_list("claim_id", "card_id")}
    which = Q(pk__in=why_of)
    for node in nodes:
        which |= Q(placement__contains=[{"node": node}])
    rows = Claim.objects.select_for_update(no_key=True, of=("self",)).filter(which)
    rows = rows.filter(state__in=(ClaimState.ADMITTED, ClaimState.REVOKING))
    if kinds:
        rows = rows.filter(work_kind__in=kinds)
    steps, late = [], []
    for claim in rows.order_by("uid"):
        if claim.state == ClaimState.REVOKING:
            late.append(claim.pk)
            continue
        why = why_of.get(claim.pk) or next(
            nodes[part["node"]] for part in claim.placement if part["node"] in nodes
        )
        changes = {"release_reason": reason, "revoke_by": at + grace, "revoked_for": None}
        steps.append(Step(row=claim, reason=why, changes=changes))
    Claim.objects.filter(pk__in=late, revoke_by__gt=at + grace).update(revoke_by=at + grace)
    move_each(steps, CLAIM, ClaimEvent.REVOKE, into=ClaimTransition, at=at, locked=True)
    publish_each("claim.revoking", ({"claim_uid": step.row.uid} for step in steps))
    return tuple(step.row for step in steps)


def _as_they_were(queues: Mapping[str, QueueView]) -> bool:
    stated = {uid: replace(view, used={}) for uid, view in queues.items()}
    now = queues_locked(stated)
    return all(now.get(uid) == view for uid, view in stated.items())
