"""Decide about all suppressed actions of a pool together: isolate, or dismiss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db import transaction

from apps.accounts.models import User
from apps.accounts.services import record_audit_entry
from apps.fleet.selectors import require_fleet_operator
from apps.monitoring.selectors.suppressed_actions import (
    SuppressedPool,
    SuppressedTarget,
    decisions_still_suppressed,
    suppressed_pools,
)
from apps.monitoring.services.faults import faults_acknowledge
from apps.monitoring.services.health_decisions import STATES
from apps.monitoring.services.isolations import (
    MOST_AT_ONCE,
    isolations_request,
    require_isolation_reason,
)
from controlplane.domain.common.accelerators import CardState

One = TypeVar("One")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressedActionsRequest:
    """What was displayed when the user decided: nothing else is changed."""

    #: Uid of the cluster, and the chip of the pool.
    cluster: str
    chip: str
    #: Uid of the newest displayed decision; empty: all that are suppressed now.
    until: str = ""
    #: Number of displayed isolations; 0: unknown.
    shown: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressedActionsResult:
    #: The pool before the request; None if no action was suppressed.
    pool: SuppressedPool | None
    #: Targets that were isolated, or dismissed.
    done: int = 0
    #: Displayed targets that are not among these: the fault has ended, or another user was faster.
    left_out: int = 0


def suppressed_pool_preview(
    request: SuppressedActionsRequest, *, actor: User, at: datetime
) -> SuppressedActionsResult:
    """What either act would begin with; nothing is changed.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    """
    require_fleet_operator(actor)
    pool = _find_pool(request, at=at)
    return SuppressedActionsResult(
        pool=pool, left_out=_excluded_count(request, pool.isolations if pool else 0)
    )


def suppressed_pool_isolate(
    request: SuppressedActionsRequest, *, reason: str, actor: User, at: datetime
) -> SuppressedActionsResult:
    """Isolate each target as the rule intended; only a user can release it.

    Targets are isolated in batches, one transaction each; those that are no longer suppressed are skipped.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises IsolationRefused: without a reason.
    """
    require_fleet_operator(actor)
    require_isolation_reason(reason)
    pool, done = _find_pool(request, at=at), 0
    try:
        for some in _split_batches(pool.places if pool else ()):
            done += _request_isolations(some, reason=reason, actor=actor, at=at)
    finally:
        # Should one batch fail, those before it are done.
        if pool and done:
            _audit_pool(pool, actor=actor, action="held_back.isolate", count=done, reason=reason)
    return SuppressedActionsResult(pool=pool, done=done, left_out=_excluded_count(request, done))


def suppressed_pool_dismiss(
    request: SuppressedActionsRequest, *, reason: str, actor: User, at: datetime
) -> SuppressedActionsResult:
    """Acknowledge the faults; the guard stays active, and rules act when its limits allow.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises IsolationRefused: without a reason.
    """
    require_fleet_operator(actor)
    require_isolation_reason(reason)
    pool = _find_pool(request, at=at)
    if pool is None:
        return SuppressedActionsResult(pool=None, left_out=_excluded_count(request, 0))
    read: set[str] = set()
    try:
        for some in _split_batches(pool.faults):
            read |= faults_acknowledge(
                uids=some, note=reason, actor=actor, at=at, updated_at=pool.newest
            )
    finally:
        done = sum(place.fault in read for place in pool.places)
        if done:
            _audit_pool(pool, actor=actor, action="held_back.leave", count=done, reason=reason)
    return SuppressedActionsResult(pool=pool, done=done, left_out=_excluded_count(request, done))


def _find_pool(request: SuppressedActionsRequest, *, at: datetime) -> SuppressedPool | None:
    found = suppressed_pools(at=at, cluster=request.cluster, chip=request.chip, until=request.until)
    return found[0] if found else None


def _excluded_count(request: SuppressedActionsRequest, done: int) -> int:
    return max(0, request.shown - done)


def _split_batches(those: Sequence[One]) -> Iterator[Sequence[One]]:
    for first in range(0, len(those), MOST_AT_ONCE):
        yield those[first : first + MOST_AT_ONCE]


@transaction.atomic
def _request_isolations(
    places: Sequence[SuppressedTarget], *, reason: str, actor: User, at: datetime
) -> int:
    """Return the number of new isolations."""
    still = decisions_still_suppressed([place.decision for place in places])
    by_state: dict[CardState, list[SuppressedTarget]] = {}
    for place in places:
        if place.decision in still:
            by_state.setdefault(STATES[place.action], []).append(place)
    return sum(
        len(
            isolations_request(
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


def _audit_pool(pool: SuppressedPool, *, actor: User, action: str, count: int, reason: str) -> None:
    record_audit_entry(
        actor=actor,
        action=action,
        uid=pool.cluster_uid,
        name=pool.name,
        count=count,
        nodes=pool.nodes,
        reason=reason,
    )
