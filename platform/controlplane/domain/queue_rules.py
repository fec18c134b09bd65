"""Whether a tree may become another: what stands against it, and what whoever saves it should know.

A *finding* forbids the change. A *warning* does not: what is wrong already and stays as it was is one, so that an
old mistake keeps nobody from a change elsewhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from controlplane.domain.fields import Finding
from controlplane.domain.queue_documents import Documents, QueueDocument, of_chip, views
from controlplane.domain.quota_findings import Below, of_single_chips, tree_findings
from controlplane.domain.quotas import TOTAL
from controlplane.domain.scheduling.snapshots import QueueView

_NAME = re.compile(r"[-a-zA-Z0-9_]{1,60}")
_LONGEST_DESCRIPTION = 2000
#: What an integer column holds.
_MOST_CARDS = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a tree stands in."""

    #: Slugs of the teams that there are.
    teams: Collection[str] = ()
    #: Chips that some plug-in knows.
    chips: Collection[str] = ()
    #: The fleet's cards by chip, whether or not they can be used.
    cards: Mapping[str, int] = field(default_factory=dict)
    #: Claims that wait in a queue, by its uid; those without any are left out.
    waiting: Mapping[str, int] = field(default_factory=dict)
    #: Claims of a queue that hold cards, or places without cards.
    holding: Mapping[str, int] = field(default_factory=dict)
    #: Cards that a queue's own claims hold, by its uid and the chip.
    used: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    #: Uids of retired queues by their names, which stay taken.
    retired: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Of a change: empty ``findings`` mean that it may be saved."""

    findings: tuple[Finding, ...]
    warnings: tuple[Finding, ...]


def judged(before: Documents, after: Documents, around: Surroundings) -> Judgement:
    """What stands against turning one tree into the other, and what to know about it."""
    known = set(_wrong(before, around))
    wrong = dict.fromkeys(
        (*_wrong(after, around), *_obstructed(before, after, around), *_misnamed(before, after))
    )
    findings = tuple(finding for finding in wrong if finding not in known)
    carried = tuple(finding for finding in wrong if finding in known)
    warnings = () if findings else tuple(_warnings(after, around))
    return Judgement(findings=findings, warnings=(*carried, *warnings))


def _wrong(documents: Documents, around: Surroundings) -> Iterator[Finding]:
    """What is wrong with a tree, whatever it was before."""
    yield from tree_findings(views(documents, {}))
    taken: dict[str, str] = {}
    for uid, document in sorted(documents.items()):
        messages = [*_misstated(document, around), *_in_wrong_hands(document, documents, around)]
        if taken.setdefault(document.name, uid) != uid:
            messages.append(
                f"the name {document.name} is given to two queues; call one of them something else"
            )
        if around.retired.get(document.name, uid) != uid:
            messages.append(
                f"the name {document.name} is that of a retired queue; choose another, "
                "or revert its retirement in the history"
            )
        yield from (Finding(field=document.name, message=message) for message in messages)


def _misstated(document: QueueDocument, around: Surroundings) -> Iterator[str]:
    name, limit = document.name, document.running_per_person
    if len(document.description) > _LONGEST_DESCRIPTION:
        yield (
            f"the description of queue {name} has {len(document.description)} characters; "
            f"{_LONGEST_DESCRIPTION} are the most"
        )
    if limit is not None and not 1 <= limit <= _MOST_CARDS:
        yield (
            f"queue {name} lets one person run {limit} claims at once; it must be 1 or more. "
            "Close the queue to let nothing start"
        )
    for chip, stated in document.entitlements.items():
        if chip != TOTAL and chip not in around.chips:
            yield (
                f"queue {name} states cards of {chip!r}, and no chip is called that; "
                f"known are {', '.join(sorted(around.chips))}"
            )
        for cards in (stated.reserved, stated.guaranteed, stated.cap):
            if cards is not None and not 0 <= cards <= _MOST_CARDS:
                yield (
                    f"queue {name} states {cards} {of_chip(chip)}; it must be a whole number from 0"
                )


def _in_wrong_hands(
    document: QueueDocument, documents: Documents, around: Surroundings
) -> Iterator[str]:
    name, team = document.name, document.team
    if team and team not in around.teams:
        yield f"queue {name} is for team {team!r}, and there is none of that name; choose another"
    above = documents.get(document.parent)
    if above is None or not above.team or above.team == team:
        return
    if team:
        yield (
            f"queue {name} is for team {team} and stands below {above.name}, which is for team "
            f"{above.team} alone; place it below a queue for every team"
        )
    else:
        yield (
            f"queue {name} is for every team and stands below {above.name}, which is for team "
            f"{above.team} alone; give it that team or place it elsewhere"
        )


def _misnamed(before: Documents, after: Documents) -> Iterator[Finding]:
    for uid, document in after.items():
        name = document.name
        was = before.get(uid)
        if (was is None or was.name != name) and not _NAME.fullmatch(name):
            message = (
                f"a queue cannot be called {name!r}; a name is 1 to 60 letters, digits, hyphens and "
                "underscores"
            )
            yield Finding(field=name, message=message)


def _obstructed(before: Documents, after: Documents, around: Surroundings) -> Iterator[Finding]:
    """Claims in queues that take none any more: those that are retired, and those that queues are put below."""
    parents = {document.parent for document in after.values()}
    for uid, document in before.items():
        waiting, holding = around.waiting.get(uid, 0), around.holding.get(uid, 0)
        name = document.name
        if not waiting and not holding:
            continue
        if uid not in after:
            message = (
                f"queue {name} has {waiting} claims that wait and {holding} that hold cards; "
                "set it to draining, and retire it when it is empty"
            )
            yield Finding(field=name, message=message)
        elif uid in parents and not _had_children(uid, before):
            message = (
                f"queue {name} has {waiting} claims that wait and {holding} that hold cards, and only a "
                "queue without queues below takes claims; set it to draining and wait until it is empty"
            )
            yield Finding(field=name, message=message)


def _had_children(uid: str, documents: Documents) -> bool:
    return any(document.parent == uid for document in documents.values())


# -- Warnings --


def _warnings(documents: Documents, around: Surroundings) -> Iterator[Finding]:
    """For a tree that nothing is wrong with."""
    tree = views(documents, around.used)
    below = Below(tree)
    used = _held_below(tree, below)
    for view in sorted(tree.values(), key=lambda view: view.name):
        messages = (
            *_of_no_effect(view, tree),
            *_unknown_to_the_fleet(view, around),
            *_over_its_cap(view, used),
        )
        yield from (Finding(field=view.name, message=message) for message in messages)
    yield from _more_than_the_fleet(below, around)


def _of_no_effect(view: QueueView, tree: Mapping[str, QueueView]) -> Iterator[str]:
    above = tree.get(view.parent or "")
    for chip, stated in (*view.entitlements.items(), (TOTAL, view.total)):
        over = None if above is None else _stated_cap(above, chip)
        if above is not None and over is not None and stated.cap is not None and stated.cap > over:
            yield (
                f"queue {view.name} has a cap of {stated.cap} {of_chip(chip)} and stands below "
                f"{above.name}, which has one of {over}: it never holds more than that"
            )
    single, total = of_single_chips(view), view.total.guaranteed
    if 0 < total < single:
        yield (
            f"queue {view.name} is guaranteed {single} cards of single chips and {total} cards in all: "
            f"it is owed no more than {total} at once"
        )
    if (single or total) and view.lends and not view.reclaims:
        yield (
            f"queue {view.name} lends its guarantee and does not take it back: it waits until those who "
            "borrowed have ended"
        )


def _unknown_to_the_fleet(view: QueueView, around: Surroundings) -> Iterator[str]:
    for chip, stated in view.entitlements.items():
        if stated.guaranteed and not around.cards.get(chip):
            yield f"queue {view.name} is guaranteed {stated.guaranteed} × {chip}, and the fleet has none"


def _over_its_cap(view: QueueView, used: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    held = used.get(view.uid, {})
    for chip, stated in (*view.entitlements.items(), (TOTAL, view.total)):
        cards = held.get(chip, 0)
        if stated.cap is not None and cards > stated.cap:
            yield (
                f"queue {view.name} holds {cards} {of_chip(chip)}, more than its cap of {stated.cap}: what "
                "runs goes on, and nothing more starts until enough of it has ended"
            )


def _more_than_the_fleet(below: Below, around: Surroundings) -> Iterator[Finding]:
    """At the top, guarantees that cannot all be kept at once."""
    for chip in (*sorted(around.cards), TOTAL):
        owed = sum(below.owed(view, chip) for view in below.children(""))
        there = around.cards[chip] if chip else sum(around.cards.values())
        if owed > there > 0:
            message = (
                f"the queues are guaranteed {owed} {of_chip(chip)} together and the fleet has {there}: "
                "they cannot all have theirs at once"
            )
            yield Finding(field="", message=message)


def _held_below(tree: Mapping[str, QueueView], below: Below) -> Mapping[str, Counter[str]]:
    """Cards that each queue and those below hold, by uid and by chip or ``TOTAL``."""
    held: dict[str, Counter[str]] = {}

    def count(view: QueueView) -> Counter[str]:
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


def _stated_cap(view: QueueView, chip: str) -> int | None:
    stated = view.entitlements.get(chip) if chip else view.total
    return None if stated is None else stated.cap
