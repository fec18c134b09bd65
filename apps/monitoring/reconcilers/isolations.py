"""What is out of use goes on its way: it is tested, and its node bears a mark on its cluster.

Each step asks a cluster, and one that does not answer takes its time: this loop waits for it, so that the loop
that decides about faults does not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.db.models import Q

from apps.fleet import selectors as fleet
from apps.monitoring.models import Isolation
from apps.monitoring.reconcilers import burn_ins
from apps.monitoring.selectors.policies import health_stance
from apps.monitoring.selectors.situations import situation_now
from apps.monitoring.services import provings
from controlplane.persistence.leases import LeaderLease, leader_lease
from controlplane.ports.clusters import ClusterError, ClusterUnavailable, TaintableCluster
from controlplane.ports.registry import UnknownAdapter

log = logging.getLogger(__name__)

LEASE = "monitoring.isolations"
#: Longer than one step takes whose cluster does not answer; each step holds the lease anew.
LEASE_TTL = timedelta(minutes=3)
#: A mark that is there is asked for again after a while, should somebody have taken it off; one that could not be
#: put there sooner.
_AGAIN, _SOON = timedelta(minutes=10), timedelta(seconds=30)
#: Row → when this process asks for its mark again.
_asked: dict[int, datetime] = {}


class _LeaseLost(Exception):
    """Another turn runs by now."""


def isolations_turn(*, at: datetime) -> int:
    """One step for each, unless a turn runs already; how many there are. What hinders one keeps no other."""
    unfinished = Q(ended_at=None) | Q(marked_node=True) | Q(evidence__has_key=provings.LAUNCH)
    rows = Isolation.objects.filter(unfinished, node__removed_at=None)
    with leader_lease(LEASE, ttl=LEASE_TTL) as lease:
        if lease is None:
            return 0
        if not (count := rows.count()):
            _asked.clear()
            return 0
        policy = health_stance().policy
        with transaction.atomic():
            situation = situation_now(policy=policy, at=at)
        hold = partial(_hold, lease)
        try:
            burn_ins.burn_ins_turn(situation=situation, policy=policy, at=at, hold=hold)
            marks_keep(at=at, hold=hold)
        except _LeaseLost:
            log.warning("a turn lost its lease; another goes on", extra={"lease": LEASE})
    return count


def _hold(lease: LeaderLease) -> None:
    """:raises _LeaseLost: if another turn runs by now."""
    if not lease.renew(ttl=LEASE_TTL):
        raise _LeaseLost


def marks_keep(*, at: datetime, hold: Callable[[], None] = lambda: None) -> int:
    """Let the clusters' nodes bear our mark while they are out of use; how many were marked or unmarked.

    Level-triggered: what could not be marked or unmarked now is tried again.

    :param hold: called before each node; what it raises ends the turn there.
    """
    whole = Isolation.objects.filter(card=None, node__removed_at=None).select_related(
        "node__cluster"
    )
    changed = 0
    # Clusters that did not answer: nobody waits for them once more in this turn.
    away: set[int] = set()
    standing = list(whole.filter(ended_at=None))
    # Also those that ended before they bore a mark: nothing else comes by to forget them.
    for over in _asked.keys() - {row.pk for row in standing}:
        del _asked[over]
    for row in standing:
        if _asked.get(row.pk, at) <= at:
            marked = _mark(row, away, hold)
            _asked[row.pk] = at + (_AGAIN if marked else _SOON)
            changed += marked
    for row in whole.filter(ended_at__isnull=False, marked_node=True):
        changed += _unmark(row, away, hold)
    return changed


def _mark(row: Isolation, away: set[int], hold: Callable[[], None]) -> bool:
    """Unless it ended meanwhile: nobody would take that mark off."""
    adapter = None if row.node.cluster_id in away else _markable(row)
    if adapter is None:
        return False
    hold()
    # Before it is there: a mark that nobody knows of would stay for ever.
    if not Isolation.objects.filter(pk=row.pk, ended_at=None).update(marked_node=True):
        return False
    try:
        return adapter.taint_node(row.node.name, row.reason)
    except ClusterError as error:
        _unreachable(row, error, away)
        return False


def _unmark(row: Isolation, away: set[int], hold: Callable[[], None]) -> bool:
    """Unless it went out of use again meanwhile: then the mark is that isolation's."""
    if row.node.cluster_id in away:
        return False
    hold()
    again = Isolation.objects.filter(node=row.node_id, card=None, ended_at=None).exists()
    adapter = _markable(row)
    try:
        if adapter is not None and not again:
            adapter.untaint_node(row.node.name)
    except ClusterError as error:
        _unreachable(row, error, away)
        return False
    return bool(Isolation.objects.filter(pk=row.pk).update(marked_node=False))


def _markable(row: Isolation) -> TaintableCluster | None:
    try:
        adapter = fleet.cluster_adapter(row.node.cluster)
    except (ClusterError, UnknownAdapter) as error:
        _unreachable(row, error)
        return None
    return adapter if isinstance(adapter, TaintableCluster) else None


def _unreachable(row: Isolation, error: Exception, away: set[int] | None = None) -> None:
    if away is not None and isinstance(error, ClusterUnavailable):
        away.add(row.node.cluster_id)
    told = {"node": str(row.node), "error": str(error)}
    log.warning("a node's mark could not be kept", extra=told)
