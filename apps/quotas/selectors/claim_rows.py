"""Claims that wait or hold something, as the scheduler sees them, read straight from their rows."""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, NamedTuple

from django.db import connection

from apps.quotas.models import Allocation
from apps.quotas.selectors.followers import Followed, Follower, Look
from controlplane.domain.claims import UNTOLD, ClaimState, GangShape
from controlplane.domain.scheduling.lines import ByKind, Waiting, by_kind
from controlplane.domain.scheduling.plans import ReplicaPlacement
from controlplane.domain.scheduling.snapshots import ClaimView, RunningView

#: Different texts of which what they say is remembered; most claims ask for what others asked for.
REMEMBERED = 4096

HOLDING = (ClaimState.ADMITTED, ClaimState.REVOKING)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Held = Mapping[tuple[str, int], list[str]]

_place = attrgetter("place")


class Where(NamedTuple):
    """Which nodes a claim takes; see ``ClaimView``."""

    selector: Mapping[str, str]
    tolerations: frozenset[str]
    within: str
    near: str
    equal_chips: int


class _Row(NamedTuple):
    """The columns of one claim, JSON as its text; instants in microseconds, as texts of them take long to read."""

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
    person: str
    explanation: str
    preemptible: bool
    chip: str
    placement: str
    admitted_at: int | None
    checkpointed_at: int | None
    heir: str


class Told(NamedTuple):
    """What those that wait were told last."""

    #: Uids of those that were not told anything yet.
    unheard: Set[str]
    #: The reason that each was told, by uid; put together when it is asked for.
    by_claim: Callable[[], Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveClaims:
    """All that wait or hold something, in the order in which they were asked for."""

    waiting: Waiting
    running: tuple[RunningView, ...]
    told: Told


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting(ClaimView):
    #: What its person was told last; no plan depends on it. Views that outlive a look may be behind: ask ``Told``.
    told: str = field(repr=False, compare=False)


#: In the words of the partial index of claims that wait. Who leaves the line mostly holds something by then.
#: All claims are gone through, so people are looked for beside them: few of either have changed.
_WAITING = Look(
    changed="""
    SELECT pg_snapshot_xmin(pg_current_snapshot())::text,
           pg_current_xact_id_if_assigned() IS NULL,
           count(*), coalesce(sum(claim.id), 0)::bigint,
           string_agg(claim.id || claim.ctid::text || claim.xmin::text
                      || coalesce((SELECT person.ctid::text || person.xmin::text FROM accounts_user AS person
                                    WHERE person.id = claim.person_id), ''),
                      ' ' ORDER BY claim.id)
               FILTER (WHERE (age(claim.xmin) > age(%(since)s::xid8::xid)) IS NOT TRUE
                          OR claim.person_id IN (SELECT person.id FROM accounts_user AS person
                                                  WHERE age(person.xmin) <= age(%(since)s::xid8::xid))),
           (SELECT string_agg(other.id::text, ' ')
              FROM quotas_claim AS other
             WHERE other.state IN ('admitted', 'revoking') AND age(other.xmin) <= age(%(since)s::xid8::xid))
      FROM quotas_claim AS claim
     WHERE claim.state = 'pending'
""",
    keys="""
    SELECT string_agg(claim.id::text, ' ') FROM quotas_claim AS claim WHERE claim.state = 'pending'
""",
)
#: In the words of the partial index of claims that hold something. Who no longer waits is nobody's heir. Heirs
#: are few and looked for one by one: joined, they may be looked for among all claims that ever were.
_HOLDING = Look(
    changed="""
    SELECT pg_snapshot_xmin(pg_current_snapshot())::text,
           pg_current_xact_id_if_assigned() IS NULL,
           count(*), coalesce(sum(claim.id), 0)::bigint,
           string_agg(claim.id || claim.ctid::text || claim.xmin::text
                      || coalesce((SELECT person.ctid::text || person.xmin::text FROM accounts_user AS person
                                    WHERE person.id = claim.person_id), '')
                      || CASE WHEN claim.revoked_for_id IS NULL THEN '' ELSE coalesce(
                             (SELECT heir.uid FROM quotas_claim AS heir
                               WHERE heir.id = claim.revoked_for_id AND heir.state = 'pending'), '') END,
                      ' ' ORDER BY claim.id)
               FILTER (WHERE (age(claim.xmin) > age(%(since)s::xid8::xid)) IS NOT TRUE
                          OR claim.person_id IN (SELECT person.id FROM accounts_user AS person
                                                  WHERE age(person.xmin) <= age(%(since)s::xid8::xid))
                          OR claim.revoked_for_id IS NOT NULL),
           NULL
      FROM quotas_claim AS claim
     WHERE claim.state IN ('admitted', 'revoking')
""",
    keys="""
    SELECT string_agg(claim.id::text, ' ') FROM quotas_claim AS claim
     WHERE claim.state IN ('admitted', 'revoking')
""",
)
_ROWS = """
    SELECT claim.id, claim.uid, claim.state, queue.uid, claim.shape::text, claim.chips::text,
           claim.priority, (extract(epoch FROM claim.created_at) * 1000000)::bigint,
           (extract(epoch FROM claim.in_line_since) * 1000000)::bigint, claim.speeds::text,
           claim.where::text, claim.runtime, coalesce(person.username, ''), claim.explanation,
           claim.preemptible, claim.chip, claim.placement::text,
           (extract(epoch FROM claim.admitted_at) * 1000000)::bigint,
           (extract(epoch FROM claim.checkpointed_at) * 1000000)::bigint,
           CASE WHEN heir.state = 'pending' THEN heir.uid ELSE '' END
      FROM quotas_claim AS claim
      JOIN quotas_queue AS queue ON queue.id = claim.queue_id
      LEFT JOIN accounts_user AS person ON person.id = claim.person_id
      LEFT JOIN quotas_claim AS heir ON heir.id = claim.revoked_for_id
     WHERE claim.id = ANY(%s)
"""


def live_claims(*, server: object) -> LiveClaims:
    """Read what changed since the last time.

    :param server: as ``shelves.server_started`` says.
    """
    line = _LINE.now(server=server)
    # Looked at last: whoever was admitted in between waits no more, nor ever will, and its cards are taken.
    holding = _RUNNING.now(server=server)
    waiting, told = _waiting(line, without=holding.values.keys())
    return LiveClaims(waiting=waiting, running=tuple(holding.values.values()), told=told)


class _InLine(NamedTuple):
    """All that wait, together."""

    by_kind: ByKind
    #: As ``Told`` has it.
    unheard: Set[str]


def _waiting(line: Followed[_Waiting, _InLine], *, without: Set[int]) -> tuple[Waiting, Told]:
    """Who waits, and what each was told last."""
    if without.isdisjoint(line.values):
        every = line.values.values()
        told = Told(line.sum.unheard, partial(_told, every))
        return Waiting.of(every, line.sum.by_kind), told
    left = [each for pk, each in line.values.items() if pk not in without]
    return Waiting.of(left, by_kind(left)), Told(_unheard(left), partial(_told, left))


def _told(waiting: Collection[_Waiting]) -> Mapping[str, str]:
    return {each.uid: each.told for each in waiting}


def _unheard(waiting: Collection[_Waiting]) -> Set[str]:
    return {each.uid for each in waiting if each.told == UNTOLD}


def _lined_up(
    before: _InLine | None, went: Sequence[_Waiting], came: Sequence[_Waiting]
) -> _InLine:
    kinds = dict(before.by_kind) if before else {}
    were = {each.uid: each for each in went}
    are = {each.uid: each for each in came}
    unheard = {*(before.unheard if before else ())}.difference(were) | _unheard(came)
    # Most of them were only told something new.
    left = by_kind([view for uid, view in were.items() if are.get(uid) != view])
    joined = by_kind([view for uid, view in are.items() if were.get(uid) != view])
    for kind in left.keys() | joined.keys():
        alike = list(kinds.get(kind, ()))
        for view in left.get(kind, ()):
            # In the order of their places, of which no two are the same.
            del alike[bisect_left(alike, view.place, key=_place)]
        if alike:
            for view in joined.get(kind, ()):
                insort(alike, view, key=_place)
        else:
            alike += joined.get(kind, ())
        if alike:
            kinds[kind] = alike
        else:
            kinds.pop(kind, None)
    return _InLine(kinds, unheard)


def _nothing(_before: None, _went: Sequence[RunningView], _came: Sequence[RunningView]) -> None:
    """Nothing is asked of all together."""


def _read_waiting(keys: Collection[int]) -> Mapping[int, _Waiting]:
    return {row.pk: _waiting_view(row) for row in _rows(keys) if row.state == ClaimState.PENDING}


def _read_holding(keys: Collection[int]) -> Mapping[int, RunningView]:
    rows = [row for row in _rows(keys) if row.state in HOLDING]
    held = _held([row.pk for row in rows])
    return {row.pk: _running_view(row, held[row.pk]) for row in rows}


def _rows(keys: Collection[int]) -> list[_Row]:
    with connection.cursor() as cursor:
        cursor.execute(_ROWS, [list(keys)])
        return [_Row(*row) for row in cursor.fetchall()]


_LINE: Follower[_Waiting, _InLine] = Follower(_WAITING, _read_waiting, _lined_up)
_RUNNING: Follower[RunningView, None] = Follower(_HOLDING, _read_holding, _nothing)


def _waiting_view(row: _Row) -> _Waiting:
    where = _where_of(row.where)
    return _Waiting(
        uid=row.uid,
        queue=row.queue,
        shape=_shape_of(row.shape),
        chips=_chips(row.chips),
        equal_chips=where.equal_chips,
        priority=row.priority,
        created_at=_instant(row.created_at if row.in_line_since is None else row.in_line_since),
        speeds=_speeds(row.speeds),
        selector=where.selector,
        tolerations=where.tolerations,
        within=where.within,
        near=where.near,
        runtime=None if row.runtime is None else timedelta(seconds=row.runtime),
        person=row.person,
        told=row.explanation,
    )


def _running_view(row: _Row, held: Held) -> RunningView:
    where, speeds = _where_of(row.where), _speeds(row.speeds)
    admitted_at = _instant(row.created_at if row.admitted_at is None else row.admitted_at)
    ends_at = None
    if row.runtime is not None:
        ends_at = admitted_at + timedelta(seconds=row.runtime) / speeds.get(row.chip, 1.0)
    return RunningView(
        uid=row.uid,
        queue=row.queue,
        shape=_shape_of(row.shape),
        chip=row.chip,
        chips=_chips(row.chips),
        priority=row.priority,
        admitted_at=admitted_at,
        replicas=_replicas(json.loads(row.placement), held),
        preemptible=row.preemptible,
        checkpointed_at=None if row.checkpointed_at is None else _instant(row.checkpointed_at),
        ends_at=ends_at,
        revoking=row.state == ClaimState.REVOKING,
        revoked_for=row.heir,
        selector=where.selector,
        tolerations=where.tolerations,
        within=where.within,
        near=where.near,
        speeds=speeds,
        person=row.person,
    )


def _held(keys: Collection[int]) -> Mapping[int, Held]:
    """Uids of the cards that each of those claims holds, by role and replica, in index order.

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


def _replicas(placement: list[dict[str, Any]], held: Held) -> tuple[ReplicaPlacement, ...]:
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


def _instant(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


@lru_cache(maxsize=REMEMBERED)
def _shape_of(text: str) -> GangShape:
    """Equal texts give the same shape."""
    return GangShape.from_json(json.loads(text))


@lru_cache(maxsize=REMEMBERED)
def _where_of(text: str) -> Where:
    value = json.loads(text)
    return Where(
        selector=value.get("selector", {}),
        tolerations=frozenset(value.get("tolerations", ())),
        within=value.get("within", ""),
        near=value.get("near", ""),
        equal_chips=value.get("equal_chips", 1),
    )


@lru_cache(maxsize=REMEMBERED)
def _chips(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


@lru_cache(maxsize=REMEMBERED)
def _speeds(text: str) -> Mapping[str, float]:
    value: Mapping[str, float] = json.loads(text)
    return value
