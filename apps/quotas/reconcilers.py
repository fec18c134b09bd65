"""The scheduling cycle: load a snapshot, plan, commit what still holds."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction

from apps.quotas import selectors, services
from apps.quotas.models import Claim
from controlplane.domain.claims import ClaimState
from controlplane.domain.machines import IllegalTransition
from controlplane.domain.scheduling.cycle import plan
from controlplane.domain.scheduling.plans import Placement
from controlplane.domain.scheduling.policies import Policy
from controlplane.persistence.leases import LoopLease, loop_lease

log = logging.getLogger(__name__)

LEASE = "quotas.cycle"
LEASE_TTL = timedelta(seconds=30)


def cycle_run(*, policy: Policy, at: datetime) -> int:
    """Run one cycle unless another runs; say how many claims were admitted."""
    if not Claim.objects.filter(state=ClaimState.PENDING).exists():
        return 0
    with loop_lease(LEASE, ttl=LEASE_TTL) as lease:
        if lease is None:
            return 0
        with transaction.atomic():
            snapshot = selectors.snapshot()
        decided = plan(snapshot, policy, at)
        admitted = sum(_commit(placement, lease=lease, at=at) for placement in decided.placements)
        services.claim_refused(refusals=decided.refusals)
    return admitted


def _commit(placement: Placement, *, lease: LoopLease, at: datetime) -> bool:
    """Admit one claim if everything still holds. A conflict is dropped; the next cycle plans anew."""
    try:
        with transaction.atomic():
            if not lease.check():
                return False
            claim = Claim.objects.get(uid=placement.claim)
            services.claim_admit(claim=claim, placement=placement, at=at)
    except (services.PlacementConflict, IllegalTransition, IntegrityError) as conflict:
        log.info(
            "a placement was dropped",
            extra={"claim": placement.claim, "conflict": str(conflict)},
        )
        return False
    return True
