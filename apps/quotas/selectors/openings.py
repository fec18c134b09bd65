"""The fleet as it stands, read at once and leanly: tens of thousands of cards are looked at in one request.

The database writes the cards of a node as one line of letters. A fleet has few different lines, so what is a
fragment is worked out once for each of them, by the scheduler's own measure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from django.db import connection
from django.db.models import Count

from apps.fleet.models import Node
from apps.quotas.models import Claim
from apps.quotas.selectors.snapshots import HOLDING
from controlplane.domain.accelerators import CardState
from controlplane.domain.claims import ClaimState, GangShape
from controlplane.domain.geometry import Geometry
from controlplane.domain.network import domains_in
from controlplane.domain.resources import Bytes, Resources
from controlplane.domain.scheduling.openings import Opening, openings
from controlplane.domain.scheduling.shapes import Shape, Typical, popular
from controlplane.domain.scheduling.snapshots import Binding, CardView, NodeView, Snapshot
from controlplane.ports.registry import geometries_on


class Use(StrEnum):
    """What matters most about a card, in one letter: the first that holds."""

    BROKEN = "b"
    HELD = "h"
    NO_NEW_WORK = "n"
    #: Free, for somebody in particular.
    KEPT = "k"
    #: Free, and of no use to most of what people ask for.
    FRAGMENT = "g"
    FREE = "f"


class Stand(NamedTuple):
    """A node. Sequences have an entry for each card, in index order."""

    uid: str
    name: str
    cluster: str
    #: Its place in the network, outermost level first.
    domains: Mapping[str, str]
    takes_work: bool
    indices: tuple[int, ...]
    chips: Sequence[str]
    #: A ``Use`` for each card.
    uses: str
    #: Primary keys of the claims that hold them; 0 where none does.
    claims: Sequence[int]
    geometries: tuple[Geometry, ...]
    opening: Opening


class Found(NamedTuple):
    """Of the whole fleet."""

    #: Nodes on which nothing runs.
    whole: int
    #: Cards that are fragments.
    fragments: float


class _Line(NamedTuple):
    """What decides what is free on a node."""

    chips: str
    indices: str
    #: Of each card: ``i`` isolated, ``u`` unknown, ``m`` held and to get no new work, and as ``Use``.
    letters: str
    schedulable: bool
    binding: str
    geometries: tuple[tuple[str, Geometry], ...]
    #: Bytes that nobody was promised.
    memory: int


class _Row(NamedTuple):
    pk: int
    uid: str
    name: str
    cluster: str
    binding: str
    ready: bool
    cordoned: bool
    labels: dict[str, str]
    memory: int


#: By node: its cards in index order.
_LINES = """
    SELECT card.node_id,
           string_agg(card.index::text, ',' ORDER BY card.index),
           string_agg(card.chip, ',' ORDER BY card.index),
           string_agg(CASE WHEN card.state = 'isolated' THEN 'i'
                           WHEN card.state = 'unknown' THEN 'u'
                           WHEN held.id IS NOT NULL AND card.state = 'no_new_work' THEN 'm'
                           WHEN held.id IS NOT NULL THEN 'h'
                           WHEN card.state = 'no_new_work' THEN 'n'
                           WHEN kept.id IS NOT NULL THEN 'k'
                           ELSE 'f' END, '' ORDER BY card.index),
           string_agg(coalesce(held.claim_id, 0)::text, ',' ORDER BY card.index)
      FROM fleet_card AS card
      LEFT JOIN quotas_allocation AS held ON held.card_id = card.id AND held.released_at IS NULL
      LEFT JOIN quotas_nomination AS kept ON kept.card_id = card.id
     WHERE card.parent_id IS NULL
     GROUP BY card.node_id
"""

#: Bytes of memory that claims hold, by uid of the node.
_PROMISED = """
    SELECT place->>'node', sum((role->>'memory')::bigint)
      FROM quotas_claim AS claim,
           jsonb_array_elements(claim.placement) AS place,
           jsonb_array_elements(claim.shape) AS role
     WHERE claim.state = ANY(%s) AND role->>'name' = place->>'role'
     GROUP BY 1
"""

_STATES = {"i": CardState.ISOLATED, "u": CardState.UNKNOWN, "m": CardState.NO_NEW_WORK}
_STATES["n"] = CardState.NO_NEW_WORK
#: Letters of a line as they are shown.
_SHOWN = str.maketrans("ium", "bbh")


def openings_now() -> Found:
    """How fragmented the fleet is now."""
    stands = fleet_now()
    return Found(
        whole=sum(stand.opening.whole for stand in stands),
        fragments=sum(stand.opening.fragments for stand in stands),
    )


def fleet_now() -> Sequence[Stand]:
    """Every node with cards, by cluster, place in the network and name."""
    typical = typical_now()
    promised = _promised() if any(one.shape.memory for one in typical) else None
    with connection.cursor() as cursor:
        cursor.execute(_LINES)
        cards = {row[0]: row[1:] for row in cursor.fetchall()}
    rows = [row for row in _nodes() if row.pk in cards]
    rows.sort(key=lambda row: (row.cluster, *_place(row.labels), natural(row.name)))
    lines = [_line(row, *cards[row.pk][:3], promised=promised) for row in rows]
    kinds = tuple(dict.fromkeys(lines))
    views = tuple(_view(str(number), line) for number, line in enumerate(kinds))
    found = openings(Snapshot(nodes=views, claims=(), queues={}), typical)
    known = {
        line: (view, opening, _uses(line, view, opening))
        for line, view, opening in zip(kinds, views, found, strict=True)
    }
    return [
        _stand(row, line, cards[row.pk][3], known[line])
        for row, line in zip(rows, lines, strict=True)
    ]


def typical_now() -> tuple[Typical, ...]:
    """What claims, waiting and running, most often ask of a node; counted by the database."""
    counted: Counter[tuple[Shape, frozenset[str]]] = Counter()
    for state, shape, chips, chip, times in (
        Claim.objects.filter(state__in=(ClaimState.PENDING, *HOLDING))
        .order_by()
        .values_list("state", "shape", "chips", "chip")
        .annotate(times=Count("id"))
    ):
        suits = frozenset(chips if state == ClaimState.PENDING else (chip,))
        for role in GangShape.from_json(shape).roles:
            if role.cards:
                counted[Shape.of(role), suits] += role.replicas * times
    return popular(counted)


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A key by which ``leaf-10`` comes after ``leaf-9``."""
    parts = [""]
    for letter in name:
        if parts[-1] and parts[-1][-1].isdecimal() != letter.isdecimal():
            parts.append("")
        parts[-1] += letter
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)


def _place(labels: Mapping[str, str]) -> tuple[tuple[tuple[int, int, str], ...], ...]:
    return tuple(natural(name) for name in domains_in(labels).values())


def _nodes() -> list[_Row]:
    rows = Node.objects.order_by().values_list(
        "pk",
        "uid",
        "name",
        "cluster__name",
        "cluster__binding",
        "ready",
        "cordoned",
        "labels",
        "memory",
    )
    return [_Row(*row) for row in rows]


def _promised() -> Mapping[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(_PROMISED, [[state.value for state in HOLDING]])
        return {node: int(amount) for node, amount in cursor.fetchall()}


def _line(
    row: _Row, indices: str, chips: str, letters: str, *, promised: Mapping[str, int] | None
) -> _Line:
    geometries = geometries_on(row.labels, set(chips.split(",")))
    return _Line(
        chips=chips,
        indices=indices,
        letters=letters,
        schedulable=row.ready and not row.cordoned,
        binding=row.binding,
        geometries=tuple(sorted(geometries.items(), key=lambda item: item[0])),
        # Where nobody asks for memory, it makes no difference.
        memory=0 if promised is None else row.memory - promised.get(row.uid, 0),
    )


def _view(uid: str, line: _Line) -> NodeView:
    chips = line.chips.split(",")
    return NodeView(
        uid=uid,
        name=uid,
        cluster="",
        cards=tuple(
            CardView(
                uid=f"{uid}/{index}",
                index=int(index),
                chip=chip,
                state=_STATES.get(letter, CardState.USABLE),
                held_by="somebody" if letter in "hm" else None,
                nominated_for="somebody" if letter == "k" else "",
            )
            for index, chip, letter in zip(
                line.indices.split(","), chips, line.letters, strict=True
            )
        ),
        capacity=Resources(memory=Bytes(max(0, line.memory))),
        schedulable=line.schedulable,
        geometries=dict(line.geometries),
        binding=Binding(line.binding),
    )


def _uses(line: _Line, view: NodeView, opening: Opening) -> str:
    """As it is shown: no new work where the node takes none, and fragments."""
    shown = line.letters.translate(_SHOWN)
    if not view.takes_work:
        return shown.replace(Use.FREE, Use.NO_NEW_WORK).replace(Use.KEPT, Use.NO_NEW_WORK)
    if not opening.broken_up:
        return shown
    return "".join(
        Use.FRAGMENT.value if use == Use.FREE and card.chip in opening.broken_up else use
        for use, card in zip(shown, view.cards, strict=True)
    )


def _stand(row: _Row, line: _Line, claims: str, known: tuple[NodeView, Opening, str]) -> Stand:
    view, opening, uses = known
    return Stand(
        uid=row.uid,
        name=row.name,
        cluster=row.cluster,
        domains=domains_in(row.labels),
        takes_work=view.takes_work,
        indices=tuple(card.index for card in view.cards),
        chips=line.chips.split(","),
        uses=uses,
        claims=tuple(map(int, claims.split(","))),
        geometries=tuple(geometry for _, geometry in line.geometries),
        opening=opening,
    )
