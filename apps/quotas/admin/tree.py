"""The tree of queues as the console shows it: what each has of every chip, and what can be done with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from apps.quotas.models import Queue
from apps.quotas.selectors.bars import Bar, bar_of
from apps.quotas.selectors.queues import Line, Share, Tree, flat
from controlplane.domain.queue_documents import Documents
from controlplane.domain.queue_rights import TreeRights, is_topmost, may_change
from controlplane.domain.queue_standings import Standing
from controlplane.domain.queues import QueueState
from controlplane.domain.quotas import TOTAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One queue and one chip."""

    label: str
    standing: Standing
    #: False where it states and holds nothing.
    shown: bool
    bar: Bar
    words: str
    #: What else there is to say of it.
    more: str
    #: How much of its guarantee the queues below share out.
    below: str
    #: They share out more than there is.
    too_much: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    label: str
    capacity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """A way to a page on which something can be done with a queue."""

    label: str | Promise
    href: str
    picture: str
    download: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    queue: Queue
    uid_above: str
    steps: range
    cells: tuple[Cell, ...]
    has_below: bool
    weight: str
    #: Claims, and the cards that they ask for; empty where none waits.
    waiting: tuple[str, ...]
    acts: tuple[Act, ...]
    #: Where it is edited; empty for who may not.
    edit_href: str
    warnings: tuple[str, ...]

    @property
    def width(self) -> int:
        """Columns of the table."""
        return len(self.cells) + 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What one person may do in the tree as it is."""

    documents: Documents
    rights: TreeRights

    def changes(self, queue: Queue) -> bool:
        """Whether anything about it is theirs to change."""
        return may_change(queue.uid, self.documents, self.rights)

    def restructures(self, queue: Queue) -> bool:
        """Whether they may move, rename and retire it."""
        return self.rights.everything or not is_topmost(queue.uid, self.documents, self.rights)


def columns_of(tree: Tree) -> tuple[Column, ...]:
    """One for each chip, and one for all together where there are several."""
    return tuple(
        Column(
            label=_chip_name(chip),
            capacity=_("%(cards)d in the fleet") % {"cards": tree.stock[chip].total}
            if chip in tree.stock
            else _("none in the fleet"),
        )
        for chip in _dimensions(tree)
    )


def rows_of(
    tree: Tree, reach: Reach, *, q: str = "", warnings: Mapping[str, Iterable[str]]
) -> list[Row]:
    """From the top down: queues that the person may change, and those above them.

    :param q: part of the name of those that are wanted; empty: all.
    :param warnings: sentences by the name of the queue.
    """
    return [
        _row(line, depth, tree, reach, tuple(warnings.get(line.queue.name, ())))
        for line, depth in _wanted(tree.tops, reach, q.strip().lower(), 0)
    ]


def _dimensions(tree: Tree) -> tuple[str, ...]:
    return (*tree.chips, TOTAL) if len(tree.chips) != 1 or _states_total(tree) else tree.chips


def _states_total(tree: Tree) -> bool:
    return any(share.chip == TOTAL for line in flat(tree.tops) for share in line.shares)


def _chip_name(chip: str) -> str:
    return chip or _("all chips")


def _wanted(lines: Iterable[Line], reach: Reach, q: str, depth: int) -> Iterator[tuple[Line, int]]:
    for line in lines:
        below = list(_wanted(line.below, reach, q, depth + 1))
        fits = reach.changes(line.queue) and q in line.queue.name.lower()
        if fits or below:
            yield line, depth
            yield from below


def _row(line: Line, depth: int, tree: Tree, reach: Reach, warnings: tuple[str, ...]) -> Row:
    queue = line.queue
    may = reach.changes(queue)
    return Row(
        queue=queue,
        uid_above=queue.parent.uid if queue.parent else "",
        steps=range(depth),
        cells=tuple(_cell(line, chip, tree) for chip in _dimensions(tree)),
        has_below=bool(line.below),
        weight=f"{queue.weight:.12g}",
        waiting=_waiting(line),
        acts=tuple(_acts(queue, reach)) if may else (),
        edit_href=reverse("admin:quotas_queue_change", args=[queue.pk]) if may else "",
        warnings=warnings,
    )


def _waiting(line: Line) -> tuple[str, ...]:
    claims, cards = line.waiting, line.waiting_cards
    if not claims:
        return ()
    return (
        ngettext("%(count)d claim", "%(count)d claims", claims) % {"count": claims},
        ngettext("%(count)d card", "%(count)d cards", cards) % {"count": cards},
    )


def _cell(line: Line, chip: str, tree: Tree) -> Cell:
    share = line.share(chip)
    stated = _own_guarantee(line, chip)
    standing = replace(share.standing, guaranteed=stated)
    below = sum(one.share(chip).standing.guaranteed for one in line.below)
    return Cell(
        label=_chip_name(chip),
        standing=standing,
        shown=share.standing != Standing(),
        bar=bar_of(share, cards=tree.scales.get(chip, 1)),
        words=_words(standing),
        more=" · ".join(_more(share)),
        below=_("%(below)d of %(stated)d guaranteed below") % {"below": below, "stated": stated}
        if line.below and (stated or below)
        else "",
        too_much=below > stated,
    )


def _own_guarantee(line: Line, chip: str) -> int:
    """What the queue itself states; where it states nothing, it is owed what those below are owed."""
    for one in line.queue.entitlements.all():
        if one.chip == chip and one.guaranteed:
            return int(one.guaranteed)
    return line.share(chip).standing.guaranteed


def _words(standing: Standing) -> str:
    told = {"used": standing.used, "stated": standing.guaranteed, "cap": standing.cap}
    if standing.guaranteed:
        if standing.cap is None:
            return _("%(used)d of %(stated)d") % told
        return _("%(used)d of %(stated)d, cap %(cap)d") % told
    if standing.cap is None:
        return _("%(used)d used") % told
    return _("%(used)d used, cap %(cap)d") % told


def _more(share: Share) -> Iterator[str]:
    standing = share.standing
    if standing.reserved:
        yield _("%(cards)d reserved") % {"cards": standing.reserved}
    if share.borrowed:
        yield _("%(cards)d borrowed") % {"cards": share.borrowed}
    if standing.lent:
        yield _("%(cards)d lent") % {"cards": standing.lent}


#: What each state is led to by, and its picture.
_STATES = (
    (QueueState.OPEN, gettext_lazy("Open it"), "circle-check"),
    (QueueState.DRAINING, gettext_lazy("Let it drain"), "clock"),
    (QueueState.CLOSED, gettext_lazy("Close it"), "lock"),
)


def _acts(queue: Queue, reach: Reach) -> Iterator[Act]:
    def to(name: str, **asked: str) -> str:
        return reverse(f"admin:quotas_queue_{name}", args=[queue.pk], query=asked or None)

    yield Act(label=_("Edit"), href=to("change"), picture="edit")
    below = reverse("admin:quotas_queue_add", query={"below": queue.uid})
    yield Act(label=_("Add a queue below"), href=below, picture="plus")
    if reach.restructures(queue):
        yield Act(label=_("Move to…"), href=to("move"), picture="arrow-right")
    for state, label, picture in _STATES:
        if queue.state != state:
            yield Act(label=label, href=to("state", to=state), picture=picture)
    if reach.restructures(queue):
        yield Act(label=pgettext("queue", "Retire"), href=to("retire"), picture="archive")
    export = reverse("admin:quotas_queue_export", query={"of": queue.uid})
    yield Act(label=_("Export this branch"), href=export, picture="download", download=True)
    yield Act(label=_("History"), href=to("history"), picture="history")
