"""Pending and running claims for the scheduler's snapshot, read incrementally from their rows."""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, NamedTuple

from apps.quotas.models import Allocation
from controlplane.domain.quotas.claims import NOT_EVALUATED_REASON, ClaimState, GangShape
from controlplane.domain.scheduling.snapshots import (
    ClaimsByClass,
    ClaimSnapshot,
    GroupedClaims,
    ReplicaPlacement,
    RunningClaim,
    claims_by_class,
)
from controlplane.persistence.reasons import reason_from_json
from controlplane.persistence.row_versions import CachedRows, RowCache, no_summary
from controlplane.persistence.transactions import fetch_rows

#: Size of the caches of parsed JSON; most claims have the same shape as others.
CACHE_SIZE = 4096

ALLOCATED_STATES = (ClaimState.ADMITTED, ClaimState.REVOKING)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

CardsByReplica = Mapping[tuple[str, int], list[str]]

_position = attrgetter("position")


class NodeConstraints(NamedTuple):
    """Node constraints of a claim; see ``ClaimSnapshot``."""

    selector: Mapping[str, str]
    within: str
    near: str
    equal_chips: int

    @classmethod
    def from_json(cls, where: Mapping[str, Any]) -> NodeConstraints:
        """The inverse of ``ClaimTerms.node_constraints_json``."""
        return cls(
            selector=where.get("selector", {}),
            within=where.get("within", ""),
            near=where.get("near", ""),
            equal_chips=where.get("equal_chips", 1),
        )


class _ClaimRow(NamedTuple):
    """The columns of one claim, JSON as its text; instants in microseconds, which parse faster than text."""

    pk: int
    uid: str
    state: str
    queue: str
    shape: str
    chips: str
    priority: int
    created_at: int
    in_line_since: int | None
    speeds: str
    where: str
    runtime: int | None
    user: str
    explanation: str
    preemptible: bool
    chip: str
    placement: str
    admitted_at: int | None
    checkpointed_at: int | None
    nominee: str


class PendingReasons(NamedTuple):
    """The stored reasons of pending claims."""

    #: Uids of claims without a reason yet.
    unexplained: Set[str]
    #: The stored reason of each claim, by uid; computed on demand.
    by_claim: Callable[[], Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveClaims:
    """All pending and running claims, in order of creation."""

    pending: GroupedClaims
    running: tuple[RunningClaim, ...]
    reasons: PendingReasons


@dataclass(frozen=True, slots=True, kw_only=True)
class _PendingClaim(ClaimSnapshot):
    #: The stored reason; no plan depends on it. Cached views may be outdated: use ``PendingReasons``.
    reason: str = field(repr=False, compare=False)


#: Each with the condition of its partial index.
_PENDING_VERSIONS = """
    SELECT array_agg(claim.id ORDER BY claim.id),
           array_agg(claim.row_version || coalesce(' ' || account.username, '') ORDER BY claim.id)
      FROM quotas_claim AS claim LEFT JOIN accounts_user AS account ON account.id = claim.user_id
     WHERE claim.state = 'pending'
"""
_ALLOCATED_VERSIONS = """
    SELECT array_agg(claim.id ORDER BY claim.id),
           array_agg(claim.row_version || coalesce(' ' || account.username, '') ORDER BY claim.id)
      FROM quotas_claim AS claim LEFT JOIN accounts_user AS account ON account.id = claim.user_id
     WHERE claim.state IN ('admitted', 'revoking')
"""
_ROWS = """
    SELECT claim.id, claim.uid, claim.state, queue.uid, claim.shape::text, claim.chips::text,
           claim.priority, (extract(epoch FROM claim.created_at) * 1000000)::bigint,
           (extract(epoch FROM claim.in_line_since) * 1000000)::bigint, claim.speeds::text,
           claim.where::text, claim.runtime, coalesce(account.username, ''), claim.explanation::text,
           claim.preemptible, claim.chip, claim.placement::text,
           (extract(epoch FROM claim.admitted_at) * 1000000)::bigint,
           (extract(epoch FROM claim.checkpointed_at) * 1000000)::bigint,
           coalesce(beneficiary.uid, '')
      FROM quotas_claim AS claim
      JOIN quotas_queue AS queue ON queue.id = claim.queue_id
      LEFT JOIN accounts_user AS account ON account.id = claim.user_id
      LEFT JOIN quotas_claim AS beneficiary ON beneficiary.id = claim.revoked_for_id
     WHERE claim.id = ANY(%s)
"""


def active_claims(*, server: object) -> ActiveClaims:
    """Active claims; reads only rows that changed since the last call.

    :param server: see ``database_server_identity``.
    """
    pending = _PENDING.refresh(server=server)
    # Read last: a claim that was admitted in between is no longer pending, and its cards are allocated.
    allocated = _ALLOCATED.refresh(server=server)
    claims, reasons = _group_pending_claims(pending, without=allocated.values.keys())
    return ActiveClaims(
        pending=claims,
        running=_current_beneficiaries(allocated.values.values(), claims),
        reasons=reasons,
    )


def _current_beneficiaries(
    running: Collection[RunningClaim], pending: GroupedClaims
) -> tuple[RunningClaim, ...]:
    """Without beneficiaries that are no longer pending."""
    named = {claim.revoked_for for claim in running if claim.revoked_for}
    gone = named.difference(claim.uid for claim in pending) if named else named
    if not gone:
        return tuple(running)
    return tuple(
        replace(claim, revoked_for="") if claim.revoked_for in gone else claim for claim in running
    )


class _PendingClaimAggregates(NamedTuple):
    """Aggregates over all pending claims."""

    by_kind: ClaimsByClass
    #: As in ``PendingReasons``.
    unexplained: Set[str]


def _group_pending_claims(
    cached: CachedRows[_PendingClaim, _PendingClaimAggregates], *, without: Set[int]
) -> tuple[GroupedClaims, PendingReasons]:
    """The pending claims and their stored reasons."""
    if without.isdisjoint(cached.values):
        every = cached.values.values()
        reasons = PendingReasons(cached.summary.unexplained, partial(_stored_reasons, every))
        return GroupedClaims.of(every, cached.summary.by_kind), reasons
    left = [each for pk, each in cached.values.items() if pk not in without]
    return GroupedClaims.of(left, claims_by_class(left)), PendingReasons(
        _claims_without_reason(left), partial(_stored_reasons, left)
    )


def _stored_reasons(pending: Collection[_PendingClaim]) -> Mapping[str, str]:
    return {each.uid: each.reason for each in pending}


def _claims_without_reason(pending: Collection[_PendingClaim]) -> Set[str]:
    return {each.uid for each in pending if each.reason == NOT_EVALUATED_REASON}


def _update_pending_aggregates(
    before: _PendingClaimAggregates | None,
    removed: Sequence[_PendingClaim],
    added: Sequence[_PendingClaim],
) -> _PendingClaimAggregates:
    classes = dict(before.by_kind) if before else {}
    old = {each.uid: each for each in removed}
    new = {each.uid: each for each in added}
    unexplained = {*(before.unexplained if before else ())}.difference(
        old
    ) | _claims_without_reason(added)
    # For most of them only the reason changed.
    left = claims_by_class([view for uid, view in old.items() if new.get(uid) != view])
    joined = claims_by_class([view for uid, view in new.items() if old.get(uid) != view])
    for kind in left.keys() | joined.keys():
        equivalent = list(classes.get(kind, ()))
        for view in left.get(kind, ()):
            # Ordered by ``position``, which is unique.
            del equivalent[bisect_left(equivalent, view.position, key=_position)]
        if equivalent:
            for view in joined.get(kind, ()):
                insort(equivalent, view, key=_position)
        else:
            equivalent += joined.get(kind, ())
        if equivalent:
            classes[kind] = equivalent
        else:
            classes.pop(kind, None)
    return _PendingClaimAggregates(classes, unexplained)


def _read_pending_claims(keys: Collection[int]) -> Mapping[int, _PendingClaim]:
    return {
        row.pk: _pending_claim_of_row(row)
        for row in _claim_rows(keys)
        if row.state == ClaimState.PENDING
    }


def _read_running_claims(keys: Collection[int]) -> Mapping[int, RunningClaim]:
    rows = [row for row in _claim_rows(keys) if row.state in ALLOCATED_STATES]
    held = _cards_by_replica([row.pk for row in rows])
    return {row.pk: _running_claim_of_row(row, held[row.pk]) for row in rows}


def _claim_rows(keys: Collection[int]) -> list[_ClaimRow]:
    return [_ClaimRow(*row) for row in fetch_rows(_ROWS, [list(keys)])]


_PENDING: RowCache[_PendingClaim, _PendingClaimAggregates] = RowCache(
    _PENDING_VERSIONS, _read_pending_claims, _update_pending_aggregates
)
_ALLOCATED: RowCache[RunningClaim, None] = RowCache(
    _ALLOCATED_VERSIONS, _read_running_claims, no_summary
)


def _pending_claim_of_row(row: _ClaimRow) -> _PendingClaim:
    return _PendingClaim(
        uid=row.uid,
        queue=row.queue,
        shape=_parse_gang_shape(row.shape),
        chips=_parse_chips(row.chips),
        priority=row.priority,
        created_at=_datetime_from_microseconds(
            row.created_at if row.in_line_since is None else row.in_line_since
        ),
        speeds=_parse_speeds(row.speeds),
        **_parse_constraints(row.where)._asdict(),
        runtime=None if row.runtime is None else timedelta(seconds=row.runtime),
        user=row.user,
        reason=reason_from_json(json.loads(row.explanation)),
    )


def _running_claim_of_row(row: _ClaimRow, held: CardsByReplica) -> RunningClaim:
    where, speeds = _parse_constraints(row.where), _parse_speeds(row.speeds)
    admitted_at = _datetime_from_microseconds(
        row.created_at if row.admitted_at is None else row.admitted_at
    )
    ends_at = None
    if row.runtime is not None:
        ends_at = admitted_at + timedelta(seconds=row.runtime) / speeds.get(row.chip, 1.0)
    return RunningClaim(
        uid=row.uid,
        queue=row.queue,
        shape=_parse_gang_shape(row.shape),
        chip=row.chip,
        chips=_parse_chips(row.chips),
        priority=row.priority,
        admitted_at=admitted_at,
        replicas=_replica_placements(json.loads(row.placement), held),
        preemptible=row.preemptible,
        checkpointed_at=None
        if row.checkpointed_at is None
        else _datetime_from_microseconds(row.checkpointed_at),
        ends_at=ends_at,
        revoking=row.state == ClaimState.REVOKING,
        revoked_for=row.nominee,
        selector=where.selector,
        within=where.within,
        near=where.near,
        speeds=speeds,
        user=row.user,
    )


def _cards_by_replica(keys: Collection[int]) -> Mapping[int, CardsByReplica]:
    """Uids of the cards of each claim, by role and replica, in index order.

    A claim's cards change only together with its row.
    """
    held: dict[int, dict[tuple[str, int], list[str]]] = defaultdict(lambda: defaultdict(list))
    if keys:
        rows = Allocation.objects.filter(claim__in=keys, released_at=None).order_by("card__index")
        for claim, role, replica, card in rows.values_list(
            "claim_id", "role", "replica", "card__uid"
        ):
            held[claim][role, replica].append(card)
    return held


def _replica_placements(
    placement: list[dict[str, Any]], held: CardsByReplica
) -> tuple[ReplicaPlacement, ...]:
    return tuple(
        ReplicaPlacement(
            role=replica["role"],
            index=replica["index"],
            node=replica["node"],
            cards=tuple(held.get((replica["role"], replica["index"]), ())),
            count=len(replica["cards"]),
        )
        for replica in placement
    )


def _datetime_from_microseconds(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


@lru_cache(maxsize=CACHE_SIZE)
def _parse_gang_shape(text: str) -> GangShape:
    """Equal texts give the same shape."""
    return GangShape.from_json(json.loads(text))


@lru_cache(maxsize=CACHE_SIZE)
def _parse_constraints(text: str) -> NodeConstraints:
    return NodeConstraints.from_json(json.loads(text))


@lru_cache(maxsize=CACHE_SIZE)
def _parse_chips(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


@lru_cache(maxsize=CACHE_SIZE)
def _parse_speeds(text: str) -> Mapping[str, float]:
    value: Mapping[str, float] = json.loads(text)
    return value
