"""A person decides at once about all that the guard holds back of one pool: take it out of use, or leave it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db import transaction

from apps.accounts.models import User
from apps.accounts.services import audit
from apps.fleet.selectors import require_operator
from apps.monitoring.selectors.held_back import HeldPlace, HeldPool, held_pools, held_still
from apps.monitoring.services.decisions import STATES
from apps.monitoring.services.faults import faults_acknowledge
from apps.monitoring.services.isolations import MOST_AT_ONCE, check_reason, isolations_order
from controlplane.domain.common.accelerators import CardState

One = TypeVar("One")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldAsk:
    """What the person saw when they said so: nothing else is touched."""

    #: Uid of the cluster, and the chip of the pool.
    cluster: str
    chip: str
    #: Uid of the newest decision that was shown; empty: whatever waits now.
    until: str = ""
    #: How many isolations were shown; 0: not told.
    shown: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldDone:
    #: As it stood just before; None: nothing waited there.
    pool: HeldPool | None
    #: Places that were taken out of use, or left.
    done: int = 0
    #: How many were shown and are not among these: the fault is over, or somebody was first.
    left_out: int = 0


def held_preview(ask: HeldAsk, *, actor: User, at: datetime) -> HeldDone:
    """What either act would begin with; nothing is changed.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    """
    require_operator(actor)
    pool = _pool(ask, at=at)
    return HeldDone(pool=pool, left_out=_left_out(ask, pool.isolations if pool else 0))


def held_isolate(ask: HeldAsk, *, reason: str, actor: User, at: datetime) -> HeldDone:
    """Take each place out of use as far as the rule wanted; only a person gives it back.

    So many places at a time are one transaction, and what no longer waits by then is left out.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises IsolationRefused: without a reason.
    """
    require_operator(actor)
    check_reason(reason)
    pool, done = _pool(ask, at=at), 0
    try:
        for some in _batches(pool.places if pool else ()):
            done += _order(some, reason=reason, actor=actor, at=at)
    finally:
        # Should one batch fail, those before it are done.
        if pool and done:
            _audit(pool, actor=actor, action="held_back.isolate", count=done, reason=reason)
    return HeldDone(pool=pool, done=done, left_out=_left_out(ask, done))


def held_leave(ask: HeldAsk, *, reason: str, actor: User, at: datetime) -> HeldDone:
    """Acknowledge the faults behind it; the guard goes on, and rules act once there is room.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises IsolationRefused: without a reason.
    """
    require_operator(actor)
    check_reason(reason)
    pool = _pool(ask, at=at)
    if pool is None:
        return HeldDone(pool=None, left_out=_left_out(ask, 0))
    read: set[str] = set()
    try:
        for some in _batches(pool.faults):
            read |= faults_acknowledge(uids=some, note=reason, actor=actor, at=at, news=pool.newest)
    finally:
        done = sum(place.fault in read for place in pool.places)
        if done:
            _audit(pool, actor=actor, action="held_back.leave", count=done, reason=reason)
    return HeldDone(pool=pool, done=done, left_out=_left_out(ask, done))


def _pool(ask: HeldAsk, *, at: datetime) -> HeldPool | None:
    found = held_pools(at=at, cluster=ask.cluster, chip=ask.chip, until=ask.until)
    return found[0] if found else None


def _left_out(ask: HeldAsk, done: int) -> int:
    return max(0, ask.shown - done)


def _batches(those: Sequence[One]) -> Iterator[Sequence[One]]:
    for first in range(0, len(those), MOST_AT_ONCE):
        yield those[first : first + MOST_AT_ONCE]


@transaction.atomic
def _order(places: Sequence[HeldPlace], *, reason: str, actor: User, at: datetime) -> int:
    """How many of them went out of use by it."""
    still = held_still([place.decision for place in places])
    by_state: dict[CardState, list[HeldPlace]] = {}
    for place in places:
        if place.decision in still:
            by_state.setdefault(STATES[place.action], []).append(place)
    return sum(
        len(
            isolations_order(
                nodes=[place.node for place in those if not place.card],
                cards=[place.card for place in those if place.card],
                reason=reason,
                actor=actor,
                at=at,
                state=state,
            )
        )
        for state, those in by_state.items()
    )


def _audit(pool: HeldPool, *, actor: User, action: str, count: int, reason: str) -> None:
    audit(
        actor=actor,
        action=action,
        uid=pool.cluster_uid,
        name=pool.name,
        count=count,
        nodes=pool.nodes,
        reason=reason,
    )
