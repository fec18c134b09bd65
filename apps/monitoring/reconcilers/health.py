"""The loop of the fleet's health: what is wrong is decided about, and what is out of use goes on its way.

::

    load     one transaction that reads a snapshot
    decide   none; ``controlplane.domain.health``
    apply    a transaction for each so many decisions, which asks first whether the lease is still ours
    empty    isolations that nothing holds any more

No cluster is asked anything in it: what waits for answers is a loop of its own (``reconcilers.isolations``).

A turn that dies anywhere leaves rows from which the next one decides the same: what was done about a fault is told
by the decisions that were written with it. One turn runs at a time, by a lease with a fencing token.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta

from django.db import transaction

from apps.monitoring.models import Decision
from apps.monitoring.selectors.policies import HealthStance, health_stance
from apps.monitoring.selectors.situations import situation_now
from apps.monitoring.services.decisions import LeaseGone, decisions_apply, notes_keep
from apps.monitoring.services.faults import faults_lapse
from apps.monitoring.services.isolations import isolations_emptied, isolations_removed
from controlplane.domain.health.decisions import Action, Decided, Situation, decide
from controlplane.domain.health.signals import Origin
from controlplane.persistence.leases import LeaderLease, leader_lease

log = logging.getLogger(__name__)

LEASE = "monitoring.health"
LEASE_TTL = timedelta(seconds=30)
#: Decisions in one transaction: the cards of so many nodes are locked meanwhile.
BATCH = 50
#: Decisions to do nothing in one transaction, for which nothing is locked.
NOTES = 1000
#: An event that is not told of again for so long is over, though nobody says so.
_EVENT_KEPT = timedelta(hours=1)
BY_PEOPLE = "decisions are left to people by the health policy"


def health_turn(*, at: datetime) -> int:
    """One turn, unless one runs already; how many decisions were written down."""
    with leader_lease(LEASE, ttl=LEASE_TTL) as lease:
        if lease is None:
            return 0
        stance = health_stance()
        faults_lapse(
            after={Origin.EVENT: _EVENT_KEPT, Origin.JOB: stance.policy.suspicion_within}, at=at
        )
        with transaction.atomic():
            situation = situation_now(policy=stance.policy, at=at)
        written = _decide(situation, stance, lease, at=at)
        isolations_removed(at=at)
        isolations_emptied(at=at)
    return written


def _decide(situation: Situation, stance: HealthStance, lease: LeaderLease, *, at: datetime) -> int:
    decided = decide(situation, stance.policy, at)
    if not stance.automatic:
        decided = tuple(map(_left_to_people, decided))
    acting = [each for each in decided if not _only_noted(each)]
    notes = [each for each in decided if _only_noted(each)]
    counts: Counter[str] = Counter()
    try:
        for first in range(0, len(acting), BATCH):
            batch = acting[first : first + BATCH]
            counts.update(decisions_apply(decided=batch, lease=lease, at=at))
            lease.renew(ttl=LEASE_TTL)
        for first in range(0, len(notes), NOTES):
            batch = notes[first : first + NOTES]
            counts[Decision.Outcome.DONE] += notes_keep(decided=batch, lease=lease, at=at)
            lease.renew(ttl=LEASE_TTL)
    except LeaseGone:
        log.warning("a turn of health lost its lease; another goes on", extra={"lease": LEASE})
    if counts:
        log.info("health was decided about", extra={"outcomes": dict(counts)})
    return counts.total()


def _only_noted(each: Decided) -> bool:
    return each.action is Action.NOTE and not (each.held_back or each.followed)


def _left_to_people(each: Decided) -> Decided:
    if each.held_back or each.action is Action.NOTE:
        return each
    return replace(each, held_back=BY_PEOPLE)
