"""What holds automatic decisions back: the blast radius and the number of nodes touched in a while.

A rule that is wrong, an exporter that prints garbage or a driver that misreads its cards can name half a fleet
within a second. What is lost by waiting for a person is one bad card longer in use; what is lost by not waiting is
the fleet. So rules may take out a small share of each pool, on few nodes in a while, the worst and oldest first.

A pool can be so small that no card is within its share. The first card, or the first node, is allowed anyway:
a pool of four would otherwise keep its broken card for ever. A share of 0 means none at all.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.reasons import Reason
from controlplane.domain.health.snapshots import (
    CardView,
    DecisionPolicy,
    HealthAction,
    HealthSnapshot,
    NodeView,
)

_OUT = frozenset({CardState.NO_NEW_WORK, CardState.ISOLATED})


def isolation_limit(size: int, policy: DecisionPolicy) -> int:
    """Of a pool of so many cards, how many rules may have taken out at once."""
    return max(1, size * policy.pool_share // 1000) if policy.pool_share else 0


class DecisionGuard:
    """Lets decisions through one after the other and counts what they take, on top of what is out already."""

    def __init__(self, snapshot: HealthSnapshot, policy: DecisionPolicy, at: datetime) -> None:
        self._policy = policy
        self._touched = {node for node, then in snapshot.recent if then > at - policy.window}
        self._restarted = {node for node, then in snapshot.restarted if then > at - policy.window}
        self._sizes: dict[str, int] = defaultdict(int)
        #: Pool → node → uids of its cards that rules took out.
        self._out: dict[str, dict[str, set[str]]] = defaultdict(dict)
        for node in snapshot.nodes.values():
            self._sizes[node.pool] += len(node.cards)
            out = {card.uid for card in node.cards if card.state in _OUT and not card.by_user}
            if out:
                self._out[node.pool][node.uid] = out

    def allowed(self, pool: str) -> int:
        """How many of the pool's cards rules may have taken out at once."""
        return isolation_limit(self._sizes[pool], self._policy)

    def admit(self, node: NodeView, card: str, action: HealthAction) -> str:
        """Why it has to wait for a person, with the numbers; empty: it may be done, and is counted."""
        if action is HealthAction.RESTART_JOB:
            return self._admit_restart(node)
        if not action.removes_capacity:
            return ""
        wrong = self._too_many_nodes(node) or self._too_many_cards(node, card)
        if not wrong:
            self._touched.add(node.uid)
            taken = self._out[node.pool].setdefault(node.uid, set())
            taken.update(each.uid for each in _newly_isolated_cards(node, card))
        return wrong

    def _admit_restart(self, node: NodeView) -> str:
        limit = self._policy.restarts_per_window
        if node.uid not in self._restarted and len(self._restarted) >= limit:
            return Reason(
                "health.guard.too_many_restarts",
                "would restart jobs on {nodes} nodes within {minutes} minutes; the "
                "policy allows {limit}",
                nodes=len(self._restarted) + 1,
                minutes=_format_minutes(self._policy),
                limit=limit,
            )
        self._restarted.add(node.uid)
        return ""

    def _too_many_nodes(self, node: NodeView) -> str:
        limit = self._policy.nodes_per_window
        if node.uid in self._touched or len(self._touched) < limit:
            return ""
        return Reason(
            "health.guard.too_many_nodes",
            "would affect {nodes} nodes within {minutes} minutes; the policy allows {limit}",
            nodes=len(self._touched) + 1,
            minutes=_format_minutes(self._policy),
            limit=limit,
        )

    def _too_many_cards(self, node: NodeView, card: str) -> str:
        out = self._out[node.pool]
        here = out.get(node.uid, set())
        already = sum(map(len, out.values()))
        new = sum(each.uid not in here for each in _newly_isolated_cards(node, card))
        allowed = self.allowed(node.pool)
        # The first card of a pool, or what makes up its first node, goes whatever its share of the pool.
        first = allowed > 0 and (already == 0 if card else already == len(here))
        if not new or first or already + new <= allowed:
            return ""
        size = self._sizes[node.pool]
        return Reason(
            "health.guard.too_many_cards",
            "would make {count} of {cards} cards of {pool} unavailable "
            "({percentage}); the policy allows {limit}",
            count=already + new,
            cards=size,
            pool=node.pool,
            percentage=f"{(already + new) / size:.1%}",
            limit=allowed,
        )


def _newly_isolated_cards(node: NodeView, card: str) -> tuple[CardView, ...]:
    """The cards that it would take out, those that a person took out left aside."""
    return tuple(
        each
        for each in node.cards
        if (not card or each.uid == card) and not (each.by_user and each.state in _OUT)
    )


def _format_minutes(policy: DecisionPolicy) -> str:
    return f"{policy.window.total_seconds() / 60:g}"
