"""Gangs that may run with fewer replicas than they want."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from controlplane.domain.claims import GangShape, RoleShape
from controlplane.domain.scheduling.snapshots import ClaimView


def at_least(claim: ClaimView) -> ClaimView:
    """The claim with no more replicas than it needs to start."""
    return at_most(claim, claim.shape.fewest_cards)


def at_most(claim: ClaimView, cards: int) -> ClaimView:
    """The claim with no more replicas than so many cards are enough for, but those that it needs to start."""
    fewest = claim.shape.fewest_cards
    if claim.shape.cards <= max(cards, fewest):
        return claim
    return replace(claim, shape=GangShape(roles=tuple(_narrowed(claim, cards - fewest))))


def _narrowed(claim: ClaimView, spare: int) -> Iterator[RoleShape]:
    for role in claim.shape.roles:
        more = role.replicas - role.fewest
        if role.cards:
            more = min(more, max(0, spare) // role.cards)
        spare -= more * role.cards
        yield replace(role, replicas=role.fewest + more, least=role.fewest if more else 0)
