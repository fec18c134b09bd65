"""What is wrong with a queue tree, in words; whoever edits queues asks before they keep them.

A plan takes a tree as it is: these rules are what makes its guarantees worth something.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import inf
from typing import TYPE_CHECKING

from controlplane.domain.fields import Finding
from controlplane.domain.quotas import TOTAL, Entitlement, way_up

if TYPE_CHECKING:
    from controlplane.domain.scheduling.snapshots import QueueView

#: Most queues on a way from the top down.
DEEPEST = 8


def tree_findings(
    queues: Mapping[str, QueueView], *, taking: Collection[str] = ()
) -> tuple[Finding, ...]:
    """What is wrong with a tree, in words, each under the name of its queue; a plan works with it all the same.

    :param taking: uids of queues that claims are submitted to; only those without queues below may be.
    """
    below = Below(queues)
    ordered = sorted(queues.values(), key=lambda view: (view.name, view.uid))
    misplaced = {view.uid: list(_misplaced(view, queues)) for view in ordered}
    # Where queues go in a circle, there is no "below" to add up.
    sound = not any(misplaced.values())
    findings: list[Finding] = []
    for view in ordered:
        children = below.children(view.uid)
        messages = [*misplaced[view.uid], *_misstated(view)]
        if sound:
            messages += _oversubscribed(view, children, below)
        if view.uid in taking:
            messages += _not_for_claims(view, children)
        findings += (Finding(field=view.name, message=message) for message in messages)
    return tuple(findings)


class Below:
    """A tree without circles, from the top down: what stands below each queue, and what that is owed."""

    def __init__(self, queues: Mapping[str, QueueView]) -> None:
        self._children: dict[str, list[QueueView]] = {}
        for view in queues.values():
            self._children.setdefault(view.parent or "", []).append(view)

    def children(self, uid: str) -> list[QueueView]:
        """The queues directly below; those at the top for an empty uid."""
        return self._children.get(uid, [])

    def owed(self, view: QueueView, chip: str) -> int:
        """Cards that the queue is guaranteed; where it states none, what those below it are together.

        In all, a queue that states no total is guaranteed at least what it is of single chips.
        """
        stated = _stated(view, chip).guaranteed
        if stated:
            return stated
        below = sum(self.owed(child, chip) for child in self.children(view.uid))
        return below if chip else max(below, of_single_chips(view))


def of_single_chips(view: QueueView) -> int:
    """Cards that the queue states as guaranteed chip by chip, added up."""
    return sum(stated.guaranteed for stated in view.entitlements.values())


def _misplaced(view: QueueView, queues: Mapping[str, QueueView]) -> Iterator[str]:
    if view.parent is not None and view.parent not in queues:
        yield f"queue {view.name} stands below {view.parent}, which does not exist; choose another"
    way = list(way_up(view.uid, queues))
    if queues[way[-1]].parent in queues:
        yield f"queue {view.name} stands below itself; let one of the queues above it stand at the top"
    elif len(way) > DEEPEST:
        yield (
            f"queue {view.name} is {len(way)} levels down, and {DEEPEST} are the most; place it higher"
        )


def _misstated(view: QueueView) -> Iterator[str]:
    for chip, stated in (*view.entitlements.items(), (TOTAL, view.total)):
        of = _of(chip)
        if stated.reserved > stated.guaranteed:
            yield (
                f"queue {view.name} reserves {stated.reserved} {of}, more than its guarantee of "
                f"{stated.guaranteed}; reserve at most the guarantee"
            )
        if stated.cap is not None and stated.guaranteed > stated.cap:
            yield (
                f"queue {view.name} guarantees {stated.guaranteed} {of}, more than its cap of "
                f"{stated.cap}; raise the cap or lower the guarantee"
            )
    single, cap = of_single_chips(view), view.total.cap
    if cap is not None and single > cap:
        yield (
            f"queue {view.name} guarantees {single} cards of single chips, more than its cap of {cap} "
            "cards in all; raise the cap or lower the guarantees"
        )
    if not 0 < view.weight < inf:
        yield f"queue {view.name} has the weight {view.weight:g}; it must be more than 0"


def _not_for_claims(view: QueueView, children: list[QueueView]) -> Iterator[str]:
    if children:
        yield f"queue {view.name} has queues below it, so it takes no claims; submit to one of those"


def _oversubscribed(view: QueueView, children: list[QueueView], tree: Below) -> Iterator[str]:
    """Guarantees below that add up to more than the queue itself has."""
    chips = dict.fromkeys(chip for child in children for chip in child.entitlements)
    for chip in (*chips, *(chip for chip in view.entitlements if chip not in chips), TOTAL):
        stated, cap = _stated(view, chip).guaranteed, _stated(view, chip).cap
        below = sum(tree.owed(child, chip) for child in children)
        if cap is not None and below > cap:
            yield (
                f"the queues below {view.name} are guaranteed {below} {_of(chip)} together, "
                f"more than its cap of {cap}; lower theirs or raise it"
            )
        elif stated and below > stated:
            yield (
                f"the queues below {view.name} are guaranteed {below} {_of(chip)} together, "
                f"more than its own {stated}; lower theirs or raise it"
            )


def _stated(view: QueueView, chip: str) -> Entitlement:
    return view.entitlements.get(chip, Entitlement()) if chip else view.total


def _of(chip: str) -> str:
    return f"× {chip}" if chip else "cards in all"
