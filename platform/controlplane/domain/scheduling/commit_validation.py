"""Commit validation: whether a plan is still valid when it is written.

Between a snapshot and its commit cards fail, nodes are cordoned, queues are edited and claims end. So each
placement is checked again against a fresh read of the cards and queues that it touches; what is admitted counts
for the next. Only hard rules are checked: a guarantee that changed meanwhile makes another plan better, not
this one wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from controlplane.domain.common.reasons import ReasonedError
from controlplane.domain.quotas.queues import TOTAL, QueueSnapshot, path_to_root
from controlplane.domain.scheduling.per_user_limits import UserClaim, UserClaimCounts
from controlplane.domain.scheduling.plans import ClaimPlacement, cards_of_replicas
from controlplane.domain.scheduling.snapshots import CardSnapshot, NodeSnapshot, ReplicaPlacement


class PlacementConflict(ReasonedError):
    """The state changed between planning and committing; the next cycle plans again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitClaim:
    """The fields of a claim that validation reads."""

    uid: str
    #: Uid of its queue.
    queue: str
    #: Its user; empty if unknown.
    user: str = ""


class CommitValidator:
    """Current state of the touched nodes, queues and users; it changes with each admitted placement."""

    def __init__(
        self,
        *,
        nodes: Iterable[NodeSnapshot],
        queues: Mapping[str, QueueSnapshot],
        running: Iterable[UserClaim],
    ) -> None:
        """:param nodes: that placements name, with the cards that they name; all cards where the node chooses.
        :param queues: of the placed claims, and all above and below those, with what each holds.
        :param running: claims that hold something, of queues with per-user limits.
        """
        self._nodes = {node.uid: node for node in nodes}
        self._queues = queues
        self._user_counts = UserClaimCounts(queues, running)
        self._free = {
            card.uid: card for node in self._nodes.values() for card in node.cards if card.free
        }
        #: What else was kept for them is kept no more.
        self._admitted: set[str] = set()
        #: Cards by queue and chip, and in all; what the queues below hold is counted in.
        self._in_use: Counter[tuple[str, str]] = Counter()
        for uid, queue in queues.items():
            for chip, cards in queue.used.items():
                self._charge_queue(uid, chip, cards)

    def admit(self, claim: CommitClaim, placement: ClaimPlacement) -> ClaimPlacement:
        """The placement with each of its cards named, also where the node chooses; it is counted from now on.

        :raises PlacementConflict: if any of it no longer holds; nothing is counted then.
        """
        bound = self._bind_cards(claim, placement)
        self._check_queues(claim, placement)
        for replica in bound.replicas:
            for uid in replica.cards:
                del self._free[uid]
        self._charge_queue(claim.queue, placement.chip, cards_of_replicas(placement.replicas))
        self._user_counts.start(claim)
        self._admitted.add(claim.uid)
        return bound

    # -- Cards --

    def _bind_cards(self, claim: CommitClaim, placement: ClaimPlacement) -> ClaimPlacement:
        taken: set[str] = set()
        replicas = []
        for replica in placement.replicas:
            node = self._nodes.get(replica.node)
            if node is None or not node.accepts_workloads:
                name = replica.node if node is None else node.name
                raise PlacementConflict(
                    "node.workloads.not_accepted",
                    "node {node} no longer accepts workloads",
                    node=name,
                )
            cards = replica.cards or self._choose_cards(claim, node, replica, placement.chip, taken)
            for uid in cards:
                self._check_card(claim, uid, node)
            taken.update(cards)
            replicas.append(replace(replica, cards=cards))
        return replace(placement, replicas=tuple(replicas))

    def _choose_cards(
        self,
        claim: CommitClaim,
        node: NodeSnapshot,
        replica: ReplicaPlacement,
        chip: str,
        taken: set[str],
    ) -> tuple[str, ...]:
        """Choose free cards of a node whose device plug-in chooses itself; which ones it will use is unknown."""
        free = [
            card.uid
            for card in sorted(node.cards, key=lambda card: card.index)
            if card.uid in self._free
            and card.uid not in taken
            and card.chip == chip
            and self._is_available_to(claim, card)
        ]
        if len(free) < replica.count:
            raise PlacementConflict(
                "placement.cards.allocated",
                "cards of node {node} are allocated to another claim",
                node=node.name,
            )
        return tuple(free[: replica.count])

    def _check_card(self, claim: CommitClaim, uid: str, node: NodeSnapshot) -> None:
        card = self._free.get(uid)
        if card is None:
            raise PlacementConflict(
                "placement.card.not_available",
                "card {card} of node {node} is allocated to another claim or no longer usable",
                card=uid,
                node=node.name,
            )
        if not self._is_available_to(claim, card):
            raise PlacementConflict(
                "placement.card.reserved",
                "card {card} of node {node} is reserved for another claim",
                card=uid,
                node=node.name,
            )

    def _is_available_to(self, claim: CommitClaim, card: CardSnapshot) -> bool:
        """Return whether the card is nominated for no other claim that is still pending."""
        return card.nominated_for in ("", claim.uid) or card.nominated_for in self._admitted

    # -- Queues and users --

    def _check_queues(self, claim: CommitClaim, placement: ClaimPlacement) -> None:
        more = cards_of_replicas(placement.replicas)
        for uid in path_to_root(claim.queue, self._queues):
            queue = self._queues[uid]
            if not queue.open:
                raise PlacementConflict(
                    "placement.queue.closed", "queue {queue} has been closed", queue=queue.name
                )
            for chip in (placement.chip, TOTAL):
                held, cap = self._in_use[uid, chip] + more, queue.quota(chip).cap
                if more and cap is not None and held > cap:
                    raise PlacementConflict(
                        "placement.queue.cap_exceeded",
                        "queue {queue} would use {used} cards; its cap is {cap}",
                        queue=queue.name,
                        used=held,
                        cap=cap,
                    )
        if (limit := self._user_counts.limit(claim)) is not None:
            raise PlacementConflict(
                "claim.user_limit.reached",
                "{user} has {admitted} of at most {limit} admitted claims in queue {queue}",
                user=limit.user,
                admitted=limit.held,
                limit=limit.bound,
                queue=limit.queue,
            )

    def _charge_queue(self, queue: str, chip: str, cards: int) -> None:
        for uid in path_to_root(queue, self._queues):
            self._in_use[uid, chip] += cards
            self._in_use[uid, TOTAL] += cards
