"""Those that a plan takes cards back from are told to save and stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.db import transaction

from apps.quotas.models import Claim, ClaimTransition
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
    move_each(steps, CLAIM, ClaimEvent.REVOKE, into=ClaimTransition, at=at)
    publish_each("claim.revoking", ({"claim_uid": step.row.uid} for step in steps))
    return tuple(step.row.uid for step in steps)


def _as_they_were(queues: Mapping[str, QueueView]) -> bool:
    stated = {uid: replace(view, used={}) for uid, view in queues.items()}
    now = queues_locked(stated)
    return all(now.get(uid) == view for uid, view in stated.items())
