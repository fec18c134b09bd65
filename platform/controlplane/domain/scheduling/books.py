"""Whether what was planned still holds when it is written down.

Between a snapshot and its commit cards break, nodes are cordoned, queues are edited and claims go. So each
placement is judged once more, against books that were opened anew for the cards and queues it touches. What is
entered counts for the next. Only what may never be broken is asked here: a guarantee that changed meanwhile makes
another plan better, not this one wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from controlplane.domain.quotas import TOTAL, way_up
from controlplane.domain.scheduling.explain import cards_of
from controlplane.domain.scheduling.people import Member, People
from controlplane.domain.scheduling.plans import Placement, ReplicaPlacement
from controlplane.domain.scheduling.snapshots import CardView, NodeView, QueueView


class PlacementConflict(Exception):
    """The world changed between planning and committing; the next cycle plans again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applicant:
    """A claim as far as the books are concerned."""

    uid: str
    #: Uid of its queue.
    queue: str
    #: Whose it is; empty where nobody knows.
    person: str = ""


class Books:
    """What the touched nodes, queues and people have now; it fills with what is entered."""

    def __init__(
        self,
        *,
        nodes: Iterable[NodeView],
        queues: Mapping[str, QueueView],
        running: Iterable[Member],
    ) -> None:
        """:param nodes: that placements name, with the cards that they name; all cards where the node chooses.
        :param queues: of the placed claims, and all above and below those, with what each holds.
        :param running: claims that hold something, of queues that limit people.
        """
        self._nodes = {node.uid: node for node in nodes}
        self._queues = queues
        self._people = People(queues, running)
        self._free = {
            card.uid: card for node in self._nodes.values() for card in node.cards if card.free
        }
        #: What else was kept for them is kept no more.
        self._entered: set[str] = set()
        #: Cards by queue and chip, and in all; what the queues below hold is counted in.
        self._held: Counter[tuple[str, str]] = Counter()
        for uid, queue in queues.items():
            for chip, cards in queue.used.items():
                self._charge(uid, chip, cards)

    def enter(self, claim: Applicant, placement: Placement) -> Placement:
        """The placement with each of its cards named, also where the node chooses; it is counted from now on.

        :raises PlacementConflict: if any of it no longer holds; nothing is counted then.
        """
        bound = self._bound(claim, placement)
        self._check_queues(claim, placement)
        for replica in bound.replicas:
            for uid in replica.cards:
                del self._free[uid]
        self._charge(claim.queue, placement.chip, cards_of(placement.replicas))
        self._people.start(claim)
        self._entered.add(claim.uid)
        return bound

    # -- Cards --

    def _bound(self, claim: Applicant, placement: Placement) -> Placement:
        taken: set[str] = set()
        replicas = []
        for replica in placement.replicas:
            node = self._nodes.get(replica.node)
            if node is None or not node.takes_work:
                name = replica.node if node is None else node.name
                raise PlacementConflict(f"node {name} takes no work any more")
            cards = replica.cards or self._stand_ins(claim, node, replica, placement.chip, taken)
            for uid in cards:
                self._check_card(claim, uid, node)
            taken.update(cards)
            replicas.append(replace(replica, cards=cards))
        return replace(placement, replicas=tuple(replicas))

    def _stand_ins(
        self,
        claim: Applicant,
        node: NodeView,
        replica: ReplicaPlacement,
        chip: str,
        taken: set[str],
    ) -> tuple[str, ...]:
        """Free cards of the node for those that its device plug-in chooses: they are held, whichever it takes."""
        free = [
            card.uid
            for card in sorted(node.cards, key=lambda card: card.index)
            if card.uid in self._free
            and card.uid not in taken
            and card.chip == chip
            and self._may_have(claim, card)
        ]
        if len(free) < replica.count:
            raise PlacementConflict(f"cards of node {node.name} have been given to another claim")
        return tuple(free[: replica.count])

    def _check_card(self, claim: Applicant, uid: str, node: NodeView) -> None:
        card = self._free.get(uid)
        if card is None:
            raise PlacementConflict(
                f"card {uid} of node {node.name} is held by another claim or can no longer be used"
            )
        if not self._may_have(claim, card):
            raise PlacementConflict(f"card {uid} of node {node.name} is kept for another claim")

    def _may_have(self, claim: Applicant, card: CardView) -> bool:
        """Whether it is kept for nobody else who still waits."""
        return card.nominated_for in ("", claim.uid) or card.nominated_for in self._entered

    # -- Queues and people --

    def _check_queues(self, claim: Applicant, placement: Placement) -> None:
        more = cards_of(placement.replicas)
        for uid in way_up(claim.queue, self._queues):
            queue = self._queues[uid]
            if not queue.open:
                raise PlacementConflict(f"queue {queue.name} has been closed")
            stated = queue.entitlements.get(placement.chip)
            for chip, bound in ((placement.chip, stated), (TOTAL, queue.total)):
                held = self._held[uid, chip] + more
                cap = bound.cap if bound else None
                if more and cap is not None and held > cap:
                    raise PlacementConflict(
                        f"queue {queue.name} would hold {held} of at most {cap}"
                    )
        if (limit := self._people.limit(claim)) is not None:
            raise PlacementConflict(
                f"{limit.person} holds {limit.held} of at most {limit.bound} claims of queue {limit.queue}"
            )

    def _charge(self, queue: str, chip: str, cards: int) -> None:
        for uid in way_up(queue, self._queues):
            self._held[uid, chip] += cards
            self._held[uid, TOTAL] += cards
