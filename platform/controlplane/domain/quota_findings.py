"""What is wrong with a queue tree, in words; whoever edits queues asks before they keep them.

A plan takes a tree as it is: these rules are what makes its guarantees worth something.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from controlplane.domain.fields import Finding
from controlplane.domain.quotas import TOTAL, Entitlement, way_up

if TYPE_CHECKING:
    from controlplane.domain.scheduling.snapshots import QueueView


def tree_findings(
    queues: Mapping[str, QueueView], *, taking: Collection[str] = ()
) -> tuple[Finding, ...]:
    """What is wrong with a tree, in words, each under the name of its queue; a plan works with it all the same.

    :param taking: uids of queues that claims are submitted to; only those without queues below may be.
    """
    below: dict[str, list[QueueView]] = {}
    for view in queues.values():
        below.setdefault(view.parent or "", []).append(view)
    findings: list[Finding] = []
    for view in sorted(queues.values(), key=lambda view: (view.name, view.uid)):
        messages = [*_misplaced(view, queues), *_misstated(view)]
        children = below.get(view.uid, [])
        messages += _oversubscribed(view, children)
        if view.uid in taking:
            messages += _not_for_claims(view, children)
        findings += (Finding(field=view.name, message=message) for message in messages)
    return tuple(findings)


def _misplaced(view: QueueView, queues: Mapping[str, QueueView]) -> Iterator[str]:
    if view.parent is not None and view.parent not in queues:
        yield f"queue {view.name} stands below {view.parent}, which does not exist; choose another"
    top = list(way_up(view.uid, queues))[-1]
    if queues[top].parent in queues:
        yield f"queue {view.name} stands below itself; let one of the queues above it stand at the top"


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
    if view.weight <= 0:
        yield f"queue {view.name} has the weight {view.weight:g}; it must be more than 0"


def _not_for_claims(view: QueueView, children: list[QueueView]) -> Iterator[str]:
    if children:
        yield f"queue {view.name} has queues below it, so it takes no claims; submit to one of those"


def _oversubscribed(view: QueueView, children: list[QueueView]) -> Iterator[str]:
    """Guarantees below that add up to more than the queue itself has."""
    chips = dict.fromkeys(chip for child in children for chip in child.entitlements)
    for chip in (*chips, TOTAL):
        stated, cap = _stated(view, chip).guaranteed, _stated(view, chip).cap
        below = sum(_stated(child, chip).guaranteed for child in children)
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
