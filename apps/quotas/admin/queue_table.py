"""The table of the queue console: quota and usage of each queue by chip, and its actions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from apps.quotas.models import Queue
from apps.quotas.selectors.queues import (
    QueueChipUsage,
    QueueEntry,
    QuotaTree,
    flatten_queue_entries,
)
from apps.quotas.selectors.quota_bars import QuotaBar, quota_bar
from controlplane.domain.quotas.permissions import (
    QueuePermissions,
    is_assigned_queue,
    may_change_queue,
)
from controlplane.domain.quotas.queue_documents import Documents
from controlplane.domain.quotas.queues import TOTAL, QueueState
from controlplane.domain.quotas.status import QueueStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaCell:
    label: str
    standing: QueueStatus
    #: False without entitlement and usage.
    shown: bool
    bar: QuotaBar
    text: str
    #: Reserved, borrowed and lent cards.
    details: str
    #: How much of its guarantee the queues below are guaranteed.
    below: str
    #: The queues below are guaranteed more than the queue itself.
    overcommitted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipColumn:
    label: str
    capacity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueAction:
    label: str | Promise
    href: str
    picture: str
    download: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTableRow:
    queue: Queue
    parent_uid: str
    steps: range
    cells: tuple[QuotaCell, ...]
    has_below: bool
    weight: str
    #: Pending claims and their cards; empty if none.
    waiting: tuple[str, ...]
    actions: tuple[QueueAction, ...]
    #: URL of the edit page; empty if not permitted.
    edit_href: str
    warnings: tuple[str, ...]

    @property
    def width(self) -> int:
        """The number of columns of the table."""
        return len(self.cells) + 4


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEditScope:
    """What a user may change in the current tree."""

    documents: Documents
    rights: QueuePermissions

    def can_change(self, queue: Queue) -> bool:
        """Whether the user may edit the queue at all."""
        return may_change_queue(queue.uid, self.documents, self.rights)

    def can_restructure(self, queue: Queue) -> bool:
        """Whether the user may move, rename and retire the queue."""
        return not is_assigned_queue(queue.uid, self.documents, self.rights)


def chip_columns(tree: QuotaTree) -> tuple[ChipColumn, ...]:
    """A column for each chip, and one for all chips if there are several."""
    return tuple(
        ChipColumn(
            label=_chip_name(chip),
            capacity=_("cards in the fleet: %(cards)d") % {"cards": tree.capacity[chip].total}
            if chip in tree.capacity
            else _("none in the fleet"),
        )
        for chip in _quota_dimensions(tree)
    )


def queue_rows(
    tree: QuotaTree, scope: QueueEditScope, *, q: str = "", warnings: Mapping[str, Iterable[str]]
) -> list[QueueTableRow]:
    """Rows from the top down: queues that the user may change, and their ancestors.

    :param q: part of the name to search for; empty for all.
    :param warnings: messages by queue name.
    """
    return [
        _queue_row(entry, depth, tree, scope, tuple(warnings.get(entry.queue.name, ())))
        for entry, depth in _matching_entries(tree.roots, scope, q.strip().lower(), 0)
    ]


def _quota_dimensions(tree: QuotaTree) -> tuple[str, ...]:
    return (*tree.chips, TOTAL) if len(tree.chips) != 1 or _has_total_quota(tree) else tree.chips


def _has_total_quota(tree: QuotaTree) -> bool:
    return any(
        share.chip == TOTAL for entry in flatten_queue_entries(tree.roots) for share in entry.shares
    )


def _chip_name(chip: str) -> str:
    return chip or _("all chips")


def _matching_entries(
    entries: Iterable[QueueEntry], scope: QueueEditScope, q: str, depth: int
) -> Iterator[tuple[QueueEntry, int]]:
    for entry in entries:
        below = list(_matching_entries(entry.below, scope, q, depth + 1))
        fits = scope.can_change(entry.queue) and q in entry.queue.name.lower()
        if fits or below:
            yield entry, depth
            yield from below


def _queue_row(
    entry: QueueEntry, depth: int, tree: QuotaTree, scope: QueueEditScope, warnings: tuple[str, ...]
) -> QueueTableRow:
    queue = entry.queue
    may = scope.can_change(queue)
    return QueueTableRow(
        queue=queue,
        parent_uid=queue.parent.uid if queue.parent else "",
        steps=range(depth),
        cells=tuple(_quota_cell(entry, chip, tree) for chip in _quota_dimensions(tree)),
        has_below=bool(entry.below),
        weight=f"{queue.weight:.12g}",
        waiting=_pending_text(entry),
        actions=tuple(_queue_actions(queue, scope)) if may else (),
        edit_href=reverse("admin:quotas_queue_change", args=[queue.pk]) if may else "",
        warnings=warnings,
    )


def _pending_text(entry: QueueEntry) -> tuple[str, ...]:
    claims, cards = entry.waiting, entry.waiting_cards
    if not claims:
        return ()
    return (
        ngettext("%(count)d claim", "%(count)d claims", claims) % {"count": claims},
        ngettext("%(count)d card", "%(count)d cards", cards) % {"count": cards},
    )


def _quota_cell(entry: QueueEntry, chip: str, tree: QuotaTree) -> QuotaCell:
    share = entry.share(chip)
    own_guarantee = _own_guarantee(entry, chip)
    standing = replace(share.standing, guaranteed=own_guarantee)
    below = sum(one.share(chip).standing.guaranteed for one in entry.below)
    return QuotaCell(
        label=_chip_name(chip),
        standing=standing,
        shown=share.standing != QueueStatus(),
        bar=quota_bar(share, cards=tree.scales.get(chip, 1)),
        text=_usage_text(standing),
        details=" · ".join(_usage_details(share)),
        below=_("%(below)d of %(stated)d guaranteed cards assigned to child queues")
        % {"below": below, "stated": own_guarantee}
        if entry.below and (own_guarantee or below)
        else "",
        overcommitted=below > own_guarantee,
    )


def _own_guarantee(entry: QueueEntry, chip: str) -> int:
    """The queue's own guarantee; without one, the sum that is guaranteed to the queues below."""
    for one in entry.queue.entitlements.all():
        if one.chip == chip and one.guaranteed:
            return int(one.guaranteed)
    return entry.share(chip).standing.guaranteed


def _usage_text(standing: QueueStatus) -> str:
    counts = {"used": standing.used, "stated": standing.guaranteed, "cap": standing.cap}
    if standing.guaranteed:
        if standing.cap is None:
            return _("used %(used)d, guaranteed %(stated)d") % counts
        return _("used %(used)d, guaranteed %(stated)d, cap %(cap)d") % counts
    if standing.cap is None:
        return _("used %(used)d") % counts
    return _("used %(used)d, cap %(cap)d") % counts


def _usage_details(share: QueueChipUsage) -> Iterator[str]:
    standing = share.standing
    if standing.reserved:
        yield _("reserved %(cards)d") % {"cards": standing.reserved}
    if share.borrowed:
        yield _("borrowed %(cards)d") % {"cards": share.borrowed}
    if standing.lent:
        yield _("lent %(cards)d") % {"cards": standing.lent}


#: Label and icon of the action for each state.
_STATES = (
    (QueueState.OPEN, gettext_lazy("Open queue"), "circle-check"),
    (QueueState.DRAINING, gettext_lazy("Drain queue"), "clock"),
    (QueueState.CLOSED, gettext_lazy("Close queue"), "lock"),
)


def _queue_actions(queue: Queue, scope: QueueEditScope) -> Iterator[QueueAction]:
    def to(name: str, **query: str) -> str:
        return reverse(f"admin:quotas_queue_{name}", args=[queue.pk], query=query or None)

    yield QueueAction(label=_("Edit"), href=to("change"), picture="edit")
    below = reverse("admin:quotas_queue_add", query={"below": queue.uid})
    yield QueueAction(label=_("Add child queue"), href=below, picture="plus")
    if scope.can_restructure(queue):
        yield QueueAction(label=_("Move to…"), href=to("move"), picture="arrow-right")
    for state, label, picture in _STATES:
        if queue.state != state:
            yield QueueAction(label=label, href=to("state", to=state), picture=picture)
    if scope.can_restructure(queue):
        yield QueueAction(label=pgettext("queue", "Retire"), href=to("retire"), picture="archive")
    export = reverse("admin:quotas_queue_export", query={"of": queue.uid})
    yield QueueAction(
        label=_("Export queue with its child queues"),
        href=export,
        picture="download",
        download=True,
    )
    yield QueueAction(label=_("History"), href=to("history"), picture="history")
