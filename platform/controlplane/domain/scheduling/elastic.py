"""Gangs that may run with fewer replicas than they want."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from controlplane.domain.claims import GangShape, RoleShape
from controlplane.domain.scheduling.snapshots import ClaimView


def at_least(claim: ClaimView) -> ClaimView:
    """The claim with no more replicas than it needs to start."""
    return at_most(claim, claim.shape.fewest_amount)


def at_most(claim: ClaimView, amount: int) -> ClaimView:
    """The claim with no more replicas than fit into the amount, but those that it needs to start.

    :param amount: thousandths of cards.
    """
    fewest = claim.shape.fewest_amount
    if claim.shape.amount <= max(amount, fewest):
        return claim
    return replace(claim, shape=GangShape(roles=tuple(_narrowed(claim, amount - fewest))))


def _narrowed(claim: ClaimView, spare: int) -> Iterator[RoleShape]:
    for role in claim.shape.roles:
        more = role.replicas - role.fewest
        if role.amount:
            more = min(more, max(0, spare) // role.amount)
        spare -= more * role.amount
        yield replace(role, replicas=role.fewest + more, least=role.fewest if more else 0)
