"""Guards that suppress automatic decisions: the blast radius and the number of nodes within a time window.

A wrong rule, an exporter that prints garbage or a driver that misreads its cards can report half a fleet within
a second. Waiting for a user costs one faulty card that stays in use; not waiting may cost the fleet. So rules
may isolate a small share of each pool, on few nodes within a window, the most severe and oldest first.

A pool can be so small that no card is within its share. The first card, or the first node, is allowed anyway: a
pool of four would otherwise never isolate its faulty card. A share of 0 means none at all.
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
    """Number of cards that rules may have isolated at the same time in a pool of that size."""
    return max(1, size * policy.pool_share // 1000) if policy.pool_share else 0


class DecisionGuard:
    """Admits decisions one by one and counts their effects, in addition to existing isolations."""

    def __init__(self, snapshot: HealthSnapshot, policy: DecisionPolicy, at: datetime) -> None:
        self._policy = policy
        self._touched = {node for node, then in snapshot.recent if then > at - policy.window}
        self._restarted = {node for node, then in snapshot.restarted if then > at - policy.window}
        self._sizes: dict[str, int] = defaultdict(int)
        #: Pool → node → uids of its cards that rules isolated.
        self._out: dict[str, dict[str, set[str]]] = defaultdict(dict)
        for node in snapshot.nodes.values():
            self._sizes[node.pool] += len(node.cards)
            out = {card.uid for card in node.cards if card.state in _OUT and not card.by_user}
            if out:
                self._out[node.pool][node.uid] = out

    def allowed(self, pool: str) -> int:
        """Number of the pool's cards that rules may have isolated at the same time."""
        return isolation_limit(self._sizes[pool], self._policy)

    def admit(self, node: NodeView, card: str, action: HealthAction) -> str:
        """Why it has to wait for a user, with the numbers; empty: it is admitted and counted."""
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
                "the action would restart jobs on {nodes} nodes within {minutes} "
                "minutes; the policy allows {limit}",
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
            "the action would affect {nodes} nodes within {minutes} minutes; the policy "
            "allows {limit}",
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
        # The first card of a pool, or the cards of its first node, are admitted whatever the share.
        first = allowed > 0 and (already == 0 if card else already == len(here))
        if not new or first or already + new <= allowed:
            return ""
        size = self._sizes[node.pool]
        return Reason(
            "health.guard.too_many_cards",
            "the isolation would make {count} of {cards} cards of {pool} unavailable "
            "({percentage}); the policy allows {limit}",
            count=already + new,
            cards=size,
            pool=node.pool,
            percentage=f"{(already + new) / size:.1%}",
            limit=allowed,
        )


def _newly_isolated_cards(node: NodeView, card: str) -> tuple[CardView, ...]:
    """Cards that it would isolate, without those that a user isolated."""
    return tuple(
        each
        for each in node.cards
        if (not card or each.uid == card) and not (each.by_user and each.state in _OUT)
    )


def _format_minutes(policy: DecisionPolicy) -> str:
    return f"{policy.window.total_seconds() / 60:g}"
