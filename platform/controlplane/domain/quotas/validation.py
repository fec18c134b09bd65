"""Validation of a queue tree and of changes to it.

A plan works with any tree; these rules are what gives its guarantees a meaning. ``tree_findings`` checks a tree
by itself, ``validate_tree_change`` a change from one tree to another: a *finding* forbids the change, a
*warning* does not. What is wrong already and stays as it was is a warning, so that an old mistake does not
block changes elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.quotas.queue_documents import (
    PLAIN_FIELDS,
    Documents,
    QueueDocument,
    RetiredQueue,
    card_unit_label,
    queue_snapshots,
)
from controlplane.domain.quotas.queues import (
    QUOTA_FIELDS,
    TOTAL,
    TOTAL_NAME,
    QueueSnapshot,
    path_to_root,
)

#: Most queues on a way from the top down.
MAX_TREE_DEPTH = 8


def tree_findings(
    queues: Mapping[str, QueueSnapshot], *, taking: Collection[str] = ()
) -> tuple[FieldFinding, ...]:
    """Errors of a tree, each with the name of its queue; the scheduler works with it all the same.

    :param taking: uids of queues with claims; only those without queues below may have any.
    """
    below = QueueChildren(queues)
    ordered = sorted(queues.values(), key=lambda view: (view.name, view.uid))
    misplaced = {view.uid: list(_parent_errors(view, queues)) for view in ordered}
    # Where queues go in a circle, there is no "below" to add up.
    sound = not any(misplaced.values())
    findings: list[FieldFinding] = []
    for view in ordered:
        children = below.children(view.uid)
        messages = [*misplaced[view.uid], *_amount_errors(view)]
        if sound:
            messages += _oversubscription_errors(view, children, below)
        if view.uid in taking:
            messages += _claim_acceptance_errors(view, children)
        findings += (FieldFinding(field=view.name, message=message) for message in messages)
    return tuple(findings)


class QueueChildren:
    """The children of each queue of a tree without cycles, and what they are guaranteed."""

    def __init__(self, queues: Mapping[str, QueueSnapshot]) -> None:
        self._children: dict[str, list[QueueSnapshot]] = {}
        for view in queues.values():
            self._children.setdefault(view.parent or "", []).append(view)

    def children(self, uid: str) -> list[QueueSnapshot]:
        """The queues directly below; those at the top for an empty uid."""
        return self._children.get(uid, [])

    def guaranteed(self, view: QueueSnapshot, chip: str) -> int:
        """Cards that the queue is guaranteed; where it states none, what those below it are together.

        In all, a queue that states no total is guaranteed at least what it is of single chips.
        """
        stated = view.quota(chip).guaranteed
        if stated:
            return stated
        below = sum(self.guaranteed(child, chip) for child in self.children(view.uid))
        return below if chip else max(below, sum_of_chip_guarantees(view))


def sum_of_chip_guarantees(view: QueueSnapshot) -> int:
    """Cards that the queue states as guaranteed chip by chip, added up."""
    return sum(stated.guaranteed for stated in view.entitlements.values())


def _parent_errors(view: QueueSnapshot, queues: Mapping[str, QueueSnapshot]) -> Iterator[str]:
    if view.parent is not None and view.parent not in queues:
        yield Reason(
            "queue.tree.parent_not_found",
            "queue {queue} is below {parent}, which does not exist; choose another parent",
            queue=view.name,
            parent=view.parent,
        )
    way = list(path_to_root(view.uid, queues))
    if queues[way[-1]].parent in queues:
        yield Reason(
            "queue.tree.cycle",
            "queue {queue} is below itself; move one of its ancestors to the top level",
            queue=view.name,
        )
    elif len(way) > MAX_TREE_DEPTH:
        yield Reason(
            "queue.tree.too_deep",
            "queue {queue} is {depth} levels deep, and at most {limit} are allowed; "
            "place it higher",
            queue=view.name,
            depth=len(way),
            limit=MAX_TREE_DEPTH,
        )


def _amount_errors(view: QueueSnapshot) -> Iterator[str]:
    for chip, stated in (*view.entitlements.items(), (TOTAL, view.total)):
        of = card_unit_label(chip)
        if stated.reserved > stated.guaranteed:
            yield Reason(
                "queue.quota.reserved_above_guaranteed",
                "queue {queue} reserves {reserved} {unit}, more than its guarantee of "
                "{guaranteed}; reserve at most the guarantee",
                queue=view.name,
                reserved=stated.reserved,
                unit=of,
                guaranteed=stated.guaranteed,
            )
        if stated.cap is not None and stated.guaranteed > stated.cap:
            yield Reason(
                "queue.quota.guaranteed_above_cap",
                "queue {queue} guarantees {guaranteed} {unit}, more than its cap of "
                "{cap}; raise the cap or lower the guarantee",
                queue=view.name,
                guaranteed=stated.guaranteed,
                unit=of,
                cap=stated.cap,
            )
    single, cap = sum_of_chip_guarantees(view), view.total.cap
    if cap is not None and single > cap:
        yield Reason(
            "queue.quota.total_guaranteed_above_cap",
            "queue {queue} guarantees {guaranteed} cards over all chips, more than "
            "its total cap of {cap} cards; raise the cap or lower the guarantees",
            queue=view.name,
            guaranteed=single,
            cap=cap,
        )


def _claim_acceptance_errors(view: QueueSnapshot, children: list[QueueSnapshot]) -> Iterator[str]:
    if children:
        yield Reason(
            "queue.claims.not_a_leaf",
            "queue {queue} has child queues, so it accepts no claims; submit to one "
            "of the child queues",
            queue=view.name,
        )


def _oversubscription_errors(
    view: QueueSnapshot, children: list[QueueSnapshot], tree: QueueChildren
) -> Iterator[str]:
    """Guarantees below that add up to more than the queue itself has."""
    chips = dict.fromkeys(chip for child in children for chip in child.entitlements)
    for chip in (*chips, *(chip for chip in view.entitlements if chip not in chips), TOTAL):
        stated, cap = view.quota(chip).guaranteed, view.quota(chip).cap
        below = sum(tree.guaranteed(child, chip) for child in children)
        if cap is not None and below > cap:
            yield Reason(
                "queue.quota.children_above_cap",
                "the guaranteed quotas of the queues below {queue} total {guaranteed} "
                "{unit}, more than its cap of {cap}; lower the guarantees or raise the "
                "cap",
                queue=view.name,
                guaranteed=below,
                unit=card_unit_label(chip),
                cap=cap,
            )
        elif stated and below > stated:
            yield Reason(
                "queue.quota.children_above_guaranteed",
                "the guaranteed quotas of the queues below {queue} total {guaranteed} "
                "{unit}, more than its own guaranteed {parent_guaranteed}; lower their "
                "guarantees or raise its own",
                queue=view.name,
                guaranteed=below,
                unit=card_unit_label(chip),
                parent_guaranteed=stated,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTreeContext:
    """The teams, chips, cards and claims against which a tree is validated."""

    #: Slugs of the teams that there are.
    teams: Collection[str] = ()
    #: Chips of installed plug-ins.
    chips: Collection[str] = ()
    #: The fleet's cards by chip, whether or not they can be used.
    cards: Mapping[str, int] = field(default_factory=dict)
    #: Pending claims in a queue, by its uid; those without any are left out.
    waiting: Mapping[str, int] = field(default_factory=dict)
    #: Claims of a queue that hold cards, or places without cards.
    holding: Mapping[str, int] = field(default_factory=dict)
    #: Cards that a queue's own claims hold, by its uid and the chip.
    used: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    #: Retired queues by name. They keep their names, so that usage of the past stays with one queue.
    retired: Mapping[str, RetiredQueue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeValidation:
    """The result for a change: it may be saved if ``findings`` is empty."""

    findings: tuple[FieldFinding, ...]
    warnings: tuple[FieldFinding, ...]


def validate_tree_change(
    before: Documents, after: Documents, context: QueueTreeContext
) -> TreeValidation:
    """Return findings and warnings for turning one tree into the other."""
    known = set(_queue_tree_errors(before, context))
    wrong = dict.fromkeys(
        (
            *_queue_tree_errors(after, context),
            *_changes_blocked_by_claims(before, after, context),
        )
    )
    findings = tuple(finding for finding in wrong if finding not in known)
    carried = tuple(finding for finding in wrong if finding in known)
    warnings = () if findings else tuple(_tree_warnings(after, context))
    return TreeValidation(findings=findings, warnings=(*carried, *warnings))


def _queue_tree_errors(documents: Documents, context: QueueTreeContext) -> Iterator[FieldFinding]:
    """Yield what is wrong with a tree, whatever it was before."""
    yield from tree_findings(queue_snapshots(documents, {}))
    taken: dict[str, str] = {}
    for uid, document in sorted(documents.items()):
        messages = [
            *_field_errors(document, context),
            *_team_conflicts(document, documents, context),
        ]
        if taken.setdefault(document.name, uid) != uid:
            messages.append(
                f"the name {document.name} is given to two queues; call one of them something else"
            )
        retired = context.retired.get(document.name)
        if retired is not None and retired.uid != uid:
            messages.append(_retired_name_error(document, retired))
        yield from (FieldFinding(field=document.name, message=message) for message in messages)


def _retired_name_error(document: QueueDocument, retired: RetiredQueue) -> str:
    """The message for a name that another, retired queue keeps; it does not name another team."""
    if retired.team == document.team:
        return Reason(
            "queue.name.retired",
            "the name {queue} is that of a retired queue; choose another name, or create a queue "
            "of this name, which restores the retired one",
            queue=document.name,
        )
    if not retired.team:
        return Reason(
            "queue.name.retired_for_every_team",
            "the name {queue} is that of a retired queue for every team; choose another name, or "
            "create the queue for every team, which restores it",
            queue=document.name,
        )
    return Reason(
        "queue.name.retired_of_other_team",
        "the name {queue} is that of a retired queue of another team; choose another name, or "
        "create the queue for that team, which restores it",
        queue=document.name,
    )


def _field_errors(document: QueueDocument, context: QueueTreeContext) -> Iterator[str]:
    for name, declared in PLAIN_FIELDS.items():
        if message := declared.error(getattr(document, name), path=document.name):
            yield message
    for chip, stated in document.entitlements.items():
        if chip != TOTAL and chip not in context.chips:
            yield Reason(
                "queue.quota.unknown_chip",
                "queue {queue} has a quota for the unknown chip {chip}; known are {chips}",
                queue=document.name,
                chip=repr(chip),
                chips=", ".join(sorted(context.chips)),
            )
        for name, declared in QUOTA_FIELDS.items():
            path = f"{document.name} › {chip or TOTAL_NAME}"
            if message := declared.error(getattr(stated, name), path=path):
                yield message


def _team_conflicts(
    document: QueueDocument, documents: Documents, context: QueueTreeContext
) -> Iterator[str]:
    name, team = document.name, document.team
    if team and team not in context.teams:
        yield Reason(
            "queue.team.not_found",
            "queue {queue} is for team {team}, which does not exist; choose another team",
            queue=name,
            team=repr(team),
        )
    above = documents.get(document.parent)
    if above is None or not above.team or above.team == team:
        return
    if team:
        yield Reason(
            "queue.team.parent_conflict",
            "queue {queue} is for team {team} and is below {parent}, which is only "
            "for team {parent_team}; place it below a queue for every team",
            queue=name,
            team=team,
            parent=above.name,
            parent_team=above.team,
        )
    else:
        yield Reason(
            "queue.team.parent_not_shared",
            "queue {queue} is for every team and is below {parent}, which is only "
            "for team {parent_team}; assign it to that team or place it elsewhere",
            queue=name,
            parent=above.name,
            parent_team=above.team,
        )


def _changes_blocked_by_claims(
    before: Documents, after: Documents, context: QueueTreeContext
) -> Iterator[FieldFinding]:
    """Yield queues with claims that would no longer accept any: retired ones, and new parents."""
    parents = {document.parent for document in after.values()}
    for uid, document in before.items():
        waiting, holding = context.waiting.get(uid, 0), context.holding.get(uid, 0)
        name = document.name
        if not waiting and not holding:
            continue
        if uid not in after:
            message = Reason(
                "queue.retirement.not_empty",
                "queue {queue} has {pending} pending and {admitted} admitted claims; set "
                "it to draining, and retire it when it is empty",
                queue=name,
                pending=waiting,
                admitted=holding,
            )
            yield FieldFinding(field=name, message=message)
        elif uid in parents and not _had_child_queues(uid, before):
            message = Reason(
                "queue.child.parent_not_empty",
                "queue {queue} has {pending} pending and {admitted} admitted claims, and "
                "only a queue without child queues can have claims; set it to draining "
                "and wait until it is empty",
                queue=name,
                pending=waiting,
                admitted=holding,
            )
            yield FieldFinding(field=name, message=message)


def _had_child_queues(uid: str, documents: Documents) -> bool:
    return any(document.parent == uid for document in documents.values())


# -- Warnings --


def _tree_warnings(documents: Documents, context: QueueTreeContext) -> Iterator[FieldFinding]:
    """For a tree that nothing is wrong with."""
    tree = queue_snapshots(documents, context.used)
    below = QueueChildren(tree)
    used = _used_below(tree, below)
    for view in sorted(tree.values(), key=lambda view: view.name):
        messages = (
            *_ineffective_limits(view, tree),
            *_unknown_chip_warnings(view, context),
            *_usage_above_cap_warnings(view, used),
            *_restored_queue_warnings(view, context),
        )
        yield from (FieldFinding(field=view.name, message=message) for message in messages)
    yield from _quota_above_fleet_warnings(below, context)


def _ineffective_limits(view: QueueSnapshot, tree: Mapping[str, QueueSnapshot]) -> Iterator[str]:
    """Yield caps and guarantees that have no effect because of others."""
    above = tree.get(view.parent or "")
    for chip, stated in (*view.entitlements.items(), (TOTAL, view.total)):
        over = None if above is None else above.quota(chip).cap
        if above is not None and over is not None and stated.cap is not None and stated.cap > over:
            yield Reason(
                "queue.warning.cap_above_parent",
                "queue {queue} has a cap of {cap} {unit} and is below {parent}, which "
                "has a cap of {parent_cap}: the lower cap applies",
                queue=view.name,
                cap=stated.cap,
                unit=card_unit_label(chip),
                parent=above.name,
                parent_cap=over,
            )
    single, total = sum_of_chip_guarantees(view), view.total.guaranteed
    if 0 < total < single:
        yield Reason(
            "queue.warning.guarantees_above_total",
            "queue {queue} is guaranteed {guaranteed} cards over all chips, but its "
            "total guarantee is {total} cards: at most {total} are guaranteed at the "
            "same time",
            queue=view.name,
            guaranteed=single,
            total=total,
        )
    if (single or total) and view.lends and not view.reclaims:
        yield Reason(
            "queue.warning.lends_without_reclaim",
            "queue {queue} lends its guaranteed quota but does not reclaim it: its "
            "claims stay pending until the borrowing claims end",
            queue=view.name,
        )


def _unknown_chip_warnings(view: QueueSnapshot, context: QueueTreeContext) -> Iterator[str]:
    for chip, stated in view.entitlements.items():
        if stated.guaranteed and not context.cards.get(chip):
            yield Reason(
                "queue.warning.chip_not_in_fleet",
                "queue {queue} is guaranteed {guaranteed} × {chip}, but the fleet has none",
                queue=view.name,
                guaranteed=stated.guaranteed,
                chip=chip,
            )


def _usage_above_cap_warnings(
    view: QueueSnapshot, used: Mapping[str, Mapping[str, int]]
) -> Iterator[str]:
    held = used.get(view.uid, {})
    for chip, stated in (*view.entitlements.items(), (TOTAL, view.total)):
        cards = held.get(chip, 0)
        if stated.cap is not None and cards > stated.cap:
            yield Reason(
                "queue.warning.usage_above_cap",
                "queue {queue} uses {used} {unit}, more than its cap of {cap}: running "
                "claims continue, and no further claims start until usage falls below "
                "the cap",
                queue=view.name,
                used=cards,
                unit=card_unit_label(chip),
                cap=stated.cap,
            )


def _restored_queue_warnings(view: QueueSnapshot, context: QueueTreeContext) -> Iterator[str]:
    retired = context.retired.get(view.name)
    if retired is not None and retired.uid == view.uid:
        yield Reason(
            "queue.warning.restored",
            "queue {queue} was retired and is restored with these values; its history and usage "
            "are kept",
            queue=view.name,
        )


def _quota_above_fleet_warnings(
    below: QueueChildren, context: QueueTreeContext
) -> Iterator[FieldFinding]:
    """Warn of top-level guarantees that exceed the fleet."""
    for chip in (*sorted(context.cards), TOTAL):
        guaranteed = sum(below.guaranteed(view, chip) for view in below.children(""))
        there = context.cards[chip] if chip else sum(context.cards.values())
        if guaranteed > there > 0:
            message = Reason(
                "queue.warning.guarantees_above_fleet",
                "the guaranteed quotas of the queues total {guaranteed} {unit}, but the "
                "fleet has {available}: they cannot all be met at the same time",
                guaranteed=guaranteed,
                unit=card_unit_label(chip),
                available=there,
            )
            yield FieldFinding(field="", message=message)


def _used_below(
    tree: Mapping[str, QueueSnapshot], below: QueueChildren
) -> Mapping[str, Counter[str]]:
    """Cards that each queue and those below hold, by uid and by chip or ``TOTAL``."""
    held: dict[str, Counter[str]] = {}

    def count(view: QueueSnapshot) -> Counter[str]:
        cards = Counter(view.used)
        cards[TOTAL] = sum(view.used.values())
        for child in below.children(view.uid):
            cards.update(count(child))
        held[view.uid] = cards
        return cards

    for view in tree.values():
        if view.parent is None:
            count(view)
    return held
