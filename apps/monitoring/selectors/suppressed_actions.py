"""Actions of rules that the guard suppresses until a user decides about them.

::

    suppressed decision ──┬── its fault has ended or was acknowledged since ──▶ dropped
                          ├── its target was isolated since ─────────────────▶ dropped
                          └── otherwise ─────────────────────────────────────▶ suppressed, counted with its pool

Read from the stored decisions, without evaluating them again: the number of statements of a page is constant. A
suspicion without a fault is not included, as it could not be acknowledged, nor is the staleness of a whole
cluster, where monitoring is at fault and not the cards.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery

from apps.fleet.models import Card
from apps.monitoring.models import Decision, Isolation
from apps.monitoring.selectors import fleet_counts
from apps.quotas.models import Allocation
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.topology import network_domains
from controlplane.domain.health.decisions import TOGETHER
from controlplane.domain.health.snapshots import HealthAction

_TAKING_OUT = [action for action in HealthAction if action.removes_capacity]
_IN_USE = frozenset({CardState.USABLE, CardState.UNKNOWN})


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressedTarget:
    """A card that would be isolated, or a whole node where ``card`` is empty."""

    #: Primary key of the decision: the strongest about the place.
    decision: int
    #: Uids.
    node: str
    card: str
    action: HealthAction
    #: Uid and code of the fault behind it.
    fault: str
    code: str
    #: The innermost part of the network that the node is in, ``rack/r12``; empty where no label names one.
    within: str


class SuppressedPart(NamedTuple):
    """So many of the isolations have this in common."""

    name: str
    isolations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressedPool:
    """Suppressed isolations of one chip in one cluster, and the cost of applying all of them."""

    cluster: str
    cluster_uid: str
    #: Empty where the nodes have no cards.
    chip: str
    #: Most severe first.
    places: Sequence[SuppressedTarget]
    #: Uids of the faults behind them, each once.
    faults: Sequence[str]
    #: Time of the oldest suppressed decision, and uid of the newest: later ones were not displayed.
    since: datetime
    until: str
    #: Time of the newest suppressed decision: earlier acknowledgements do not cover it.
    newest: datetime
    #: Additional cards that would be isolated, and how many of them are usable now.
    cards: int
    usable_lost: int
    #: Jobs and deployments that would have to stop.
    works: int
    #: Cards of the pool: in total, unusable (isolated or cordoned), and usable now.
    size: int
    out: int
    usable: int

    @property
    def isolations(self) -> int:
        return len(self.places)

    @property
    def nodes(self) -> int:
        return len({place.node for place in self.places})

    @property
    def left(self) -> int:
        """Cards that could still be used."""
        return max(0, self.usable - self.usable_lost)

    @property
    def name(self) -> str:
        """As the guard calls the pool."""
        return " in ".join(filter(None, (self.chip, self.cluster)))

    @property
    def codes(self) -> Sequence[SuppressedPart]:
        """How many for each code, the most first."""
        return _count_isolations_by_name(place.code for place in self.places)

    @property
    def parts(self) -> Sequence[SuppressedPart]:
        """How many in each part of the network that labels name, the most first."""
        return _count_isolations_by_name(place.within for place in self.places if place.within)


def _count_isolations_by_name(names: Iterable[str]) -> list[SuppressedPart]:
    return [SuppressedPart(*each) for each in Counter(names).most_common()]


class SuppressedCount(NamedTuple):
    isolations: int
    nodes: int


def suppressed_counts() -> SuppressedCount:
    """Number of suppressed isolations, in one statement."""
    rows = _suppressed_decisions().order_by().values_list("node_id", "card_id").distinct()
    places: set[tuple[int, int | None]] = set(rows)
    whole = {node for node, card in places if card is None}
    counted = [(node, card) for node, card in places if card is None or node not in whole]
    return SuppressedCount(isolations=len(counted), nodes=len({node for node, _ in counted}))


def suppressed_pools(
    *, at: datetime, cluster: str = "", chip: str | None = None, until: str = ""
) -> Sequence[SuppressedPool]:
    """Pools with suppressed isolations, the largest first; the number of statements is constant.

    :param cluster: uid; empty: of all.
    :param chip: None: of all.
    :param until: uid of a decision: exclude later ones.
    """
    rows = _suppressed_decisions()
    if cluster:
        rows = rows.filter(node__cluster__uid=cluster)
    if until:
        newest = Decision.objects.filter(uid=until).values("pk")[:1]
        rows = rows.filter(pk__lte=Subquery(newest))
    waiting = list(rows.select_related("node__cluster", "card", "fault").order_by("pk"))
    if not waiting:
        return []
    nodes = _NodeCardsAndWorkloads(node_ids={row.node_id for row in waiting})
    by_pool: dict[tuple[str, str], list[Decision]] = defaultdict(list)
    for row in waiting:
        own = row.card.chip if row.card else nodes.chip(row.node_id)
        if chip is None or own == chip:
            by_pool[row.node.cluster.uid, own].append(row)
    sizes = {(one.cluster_uid, one.chip): one.counts for one in fleet_counts.chip_pools(at=at)}
    found = [
        _suppressed_pool(own, held, nodes, sizes.get((uid, own), fleet_counts.CardCounts()))
        for (uid, own), held in by_pool.items()
    ]
    return sorted(found, key=lambda pool: (-pool.isolations, pool.name))


def decisions_still_suppressed(decisions: Collection[int]) -> frozenset[int]:
    """Those decisions, by primary key, that are still suppressed."""
    return frozenset(_suppressed_decisions().filter(pk__in=decisions).values_list("pk", flat=True))


def _suppressed_decisions() -> QuerySet[Decision]:
    place = Q(card=None) | Q(card=OuterRef("card"))
    since = Q(ended_at__gte=OuterRef("at")) | Q(ended_at=None, began_at__gte=OuterRef("at"))
    gone_out = Isolation.objects.filter(place, node=OuterRef("node")).filter(
        since | Q(ended_at=None, card=None)
    )
    rows = Decision.objects.filter(
        outcome=Decision.Outcome.HELD_BACK,
        action__in=_TAKING_OUT,
        fault__isnull=False,
        fault__ended_at=None,
        card__removed_at=None,
        node__removed_at=None,
        node__cluster__removed_at=None,
    )
    unread = Q(fault__acknowledged_at=None) | Q(fault__acknowledged_at__lt=F("at"))
    # A cordoned card may have become isolated in the same row. A reason that is no list has no such key, and
    # SQL neither includes nor excludes it by that.
    alone = Q(reason__params__reasons__0__code__isnull=True) | ~Q(
        reason__params__reasons__0__code=TOGETHER.code
    )
    return (
        rows.filter(unread, alone).exclude(card__state=CardState.ISOLATED).exclude(Exists(gone_out))
    )


class _NodeCardsAndWorkloads:
    """The cards of some nodes, and what runs on them."""

    def __init__(self, *, node_ids: Collection[int]) -> None:
        rows = Card.objects.filter(node__in=node_ids, parent=None).select_related("node")
        self._of_node: dict[int, list[Card]] = defaultdict(list)
        for card in rows.order_by("pk"):
            self._of_node[card.node_id].append(card)
        self._works: dict[int, set[tuple[str, str]]] = defaultdict(set)
        given = Allocation.objects.filter(node__in=node_ids, released_at=None).values_list(
            "card_id", "card__parent_id", "claim__work_kind", "claim__work_uid"
        )
        for card_id, parent, kind, uid in given:
            self._works[parent or card_id].add((kind, uid))

    def chip(self, node: int) -> str:
        """What most of its cards are; empty where it has none."""
        chips = [card.chip for card in self._of_node[node]]
        return max(chips, key=chips.count, default="")

    def at(self, row: Decision) -> Sequence[Card]:
        """What goes with the place."""
        own = self._of_node[row.node_id]
        return own if row.card_id is None else [card for card in own if card.pk == row.card_id]

    def works(self, cards: Iterable[Card]) -> set[tuple[str, str]]:
        """What holds any of them, or a slice of one."""
        return {work for card in cards for work in self._works[card.pk]}


def _suppressed_pool(
    chip: str,
    held: Sequence[Decision],
    nodes: _NodeCardsAndWorkloads,
    counts: fleet_counts.CardCounts,
) -> SuppressedPool:
    rows = _strongest_decisions(held)
    lost = {card for row in rows for card in nodes.at(row) if card.state in _IN_USE}
    stopping = [card for row in rows if HealthAction(row.action).stops for card in nodes.at(row)]
    first = held[0].node.cluster
    return SuppressedPool(
        cluster=first.name,
        cluster_uid=first.uid,
        chip=chip,
        places=[_suppressed_target(row) for row in rows],
        faults=list(dict.fromkeys(row.fault.uid for row in held if row.fault)),
        since=min(row.at for row in held),
        until=held[-1].uid,
        newest=max(row.at for row in held),
        cards=len(lost),
        usable_lost=sum(_is_usable_card(card) for card in lost),
        works=len(nodes.works(stopping)),
        size=counts.total,
        out=counts.isolated + counts.no_new_work,
        usable=counts.usable,
    )


def _strongest_decisions(held: Iterable[Decision]) -> list[Decision]:
    """One decision for each place; a card goes with its node where that is to go as a whole."""
    best: dict[tuple[int, int | None], Decision] = {}
    for row in held:
        known = best.get((row.node_id, row.card_id))
        if known is None or HealthAction(row.action).rank > HealthAction(known.action).rank:
            best[row.node_id, row.card_id] = row
    rows = [row for (node, card), row in best.items() if card is None or (node, None) not in best]
    return sorted(rows, key=lambda row: (-HealthAction(row.action).rank, row.pk))


def _suppressed_target(row: Decision) -> SuppressedTarget:
    domains = list(network_domains(row.node.labels).items())
    return SuppressedTarget(
        decision=row.pk,
        node=row.node.uid,
        card=row.card.uid if row.card else "",
        action=HealthAction(row.action),
        fault=row.fault.uid if row.fault else "",
        code=row.fault.code if row.fault else "",
        within="/".join(domains[-1]) if domains else "",
    )


def _is_usable_card(card: Card) -> bool:
    return card.state == CardState.USABLE and card.node.ready and not card.node.cordoned
