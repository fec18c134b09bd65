"""Small fleets for tests of decisions, and what a turn of the product does with what was decided."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.health.decisions import decide_actions
from controlplane.domain.health.faults import FaultLevel, SignalOrigin
from controlplane.domain.health.snapshots import (
    CardView,
    DecisionPolicy,
    FaultView,
    HealthAction,
    HealthDecision,
    HealthSnapshot,
    NodeView,
)

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
POOL = "h100 of west"
_STATES = {
    HealthAction.RESET_WHEN_IDLE: CardState.NO_NEW_WORK,
    HealthAction.RESET_NOW: CardState.ISOLATED,
    HealthAction.ISOLATE_CARD: CardState.ISOLATED,
    HealthAction.ISOLATE_NODE: CardState.ISOLATED,
}


def ago(**span: float) -> datetime:
    return NOW - timedelta(**span)


def node(
    uid: str,
    *,
    cards: int = 8,
    cluster: str = "west",
    pool: str = POOL,
    keeper: str = "",
    binds_by_node: bool = False,
    seen_at: datetime | None = None,
) -> NodeView:
    """A node whose cards are all usable, called by its name and their numbers."""
    return NodeView(
        uid=uid,
        cluster=cluster,
        pool=pool,
        cards=tuple(CardView(uid=f"{uid}-{n}", state=CardState.USABLE) for n in range(cards)),
        last_seen_at=seen_at,
        keeper=keeper,
        binds_by_node=binds_by_node,
    )


def fleet(nodes: int, *, cards: int = 8) -> dict[str, NodeView]:
    return {f"n{n}": node(f"n{n}", cards=cards) for n in range(nodes)}


def withheld(view: NodeView, state: CardState, *cards: str, by_user: bool = False) -> NodeView:
    """The node with those of its cards in that state; all of them where none is named."""
    return replace(
        view,
        cards=tuple(
            replace(card, state=state, by_user=by_user) if not cards or card.uid in cards else card
            for card in view.cards
        ),
    )


def fault(
    card: str,
    level: FaultLevel = FaultLevel.ISOLATE,
    *,
    uid: str = "",
    code: str = "79",
    origin: SignalOrigin = SignalOrigin.EXPORTER,
    began_at: datetime = NOW,
    ended_at: datetime | None = None,
) -> FaultView:
    """Of a card, such as ``n0-3``, or of a node, such as ``n0``."""
    place, _, number = card.partition("-")
    return FaultView(
        uid=uid or f"{origin} {card} {code} {began_at.isoformat()}",
        node=place,
        card=card if number else "",
        origin=origin,
        code=code,
        level=level,
        began_at=began_at,
        reported_at=ended_at or max(began_at, NOW),
        ended_at=ended_at,
    )


def silence(name: str, *, began_at: datetime) -> FaultView:
    return fault(name, origin=SignalOrigin.SILENCE, code="node-silent", began_at=began_at)


def health_snapshot(
    nodes: Iterable[NodeView] | dict[str, NodeView], *faults: FaultView
) -> HealthSnapshot:
    views = nodes.values() if isinstance(nodes, dict) else nodes
    return HealthSnapshot(nodes={view.uid: view for view in views}, faults=faults)


def decided(
    seen: HealthSnapshot, policy: DecisionPolicy | None = None, at: datetime = NOW
) -> tuple[HealthDecision, ...]:
    return decide_actions(seen, policy or DecisionPolicy(), at)


def only(found: tuple[HealthDecision, ...]) -> HealthDecision:
    assert len(found) == 1, found
    return found[0]


def applied(
    seen: HealthSnapshot, found: Iterable[HealthDecision], at: datetime = NOW
) -> HealthSnapshot:
    """The situation after all that was not held back has been done."""
    nodes, answers = dict(seen.nodes), dict(seen.decided)
    recent, restarted = list(seen.recent), list(seen.restarted)
    for each in found:
        if each.held_back:
            continue
        if each.fault:
            answers[each.fault] = max(
                each.action,
                answers.get(each.fault, HealthAction.NOTE),
                key=lambda action: action.rank,
            )
        if each.action in _STATES:
            cards = (each.card,) if each.card else ()
            nodes[each.node] = _worse(nodes[each.node], _STATES[each.action], cards)
            recent.append((each.node, at))
        if each.action is HealthAction.RESTART_JOB:
            restarted.append((each.node, at))
    return replace(
        seen, nodes=nodes, decided=answers, recent=tuple(recent), restarted=tuple(restarted)
    )


def _worse(view: NodeView, state: CardState, cards: tuple[str, ...]) -> NodeView:
    """No state is bettered: an isolated card does not become one that only takes no new work."""
    aimed = [card.uid for card in view.cards if not cards or card.uid in cards]
    if state is CardState.NO_NEW_WORK:
        aimed = [c.uid for c in view.cards if c.uid in aimed and c.state is not CardState.ISOLATED]
    return withheld(view, state, *aimed) if aimed else view
