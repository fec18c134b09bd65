"""Bars of quota and usage as segments, for queues and for the fleet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from apps.quotas.selectors.queues import ChipCapacity, QueueChipUsage, QueueEntry, QuotaTree
from controlplane.domain.quotas.queues import TOTAL
from controlplane.domain.quotas.status import QueueStatus

#: Width of a bar in units.
WIDTH = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class BarSegment:
    #: ``own``, ``lent``, ``idle``, ``borrowed``, ``room`` up to the cap, or the rest of the ``fleet``; in the
    #: bar of the whole fleet also ``broken``.
    kind: str
    x: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaBar:
    share: QueueChipUsage
    segments: tuple[BarSegment, ...]
    #: End of the reserved part; None if nothing is reserved.
    reserved_x: float | None
    #: End of the guarantee; None if there is none.
    guaranteed_x: float | None

    @property
    def is_total(self) -> bool:
        """Whether it is for all chips together."""
        return self.share.chip == TOTAL

    @property
    def standing(self) -> QueueStatus:
        return self.share.standing


def quota_bar(share: QueueChipUsage, *, cards: int) -> QuotaBar:
    """The bar of one queue and chip.

    :param cards: cards at full width; see ``QuotaTree.scales``.
    """
    standing = share.standing
    lengths = (
        ("own", share.own),
        ("lent", standing.lent),
        ("idle", standing.idle if share.borrowing_known else 0),
        ("borrowed", share.borrowed),
    )
    drawn = sum(length for _kind, length in lengths)
    whole = max(cards, drawn)
    cap = whole if standing.cap is None else min(standing.cap, whole)
    room = max(0, cap - drawn)
    scale = WIDTH / whole
    return QuotaBar(
        share=share,
        segments=_bar_segments((*lengths, ("room", room), ("fleet", whole - drawn - room)), scale),
        reserved_x=round(standing.reserved * scale, 1) if standing.reserved else None,
        guaranteed_x=round(standing.guaranteed * scale, 1) if standing.guaranteed else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetBar:
    """All cards of a chip: in use, borrowed, free and unusable."""

    chip: str
    capacity: ChipCapacity
    own: int
    borrowed: int
    #: Not allocated, but unhealthy or cordoned.
    unusable: int
    segments: tuple[BarSegment, ...]

    @property
    def allocated(self) -> int:
        return self.own + self.borrowed


def fleet_bars(tree: QuotaTree, *, chip: str) -> list[FleetBar]:
    """A bar for each chip of the fleet, or for the given one."""
    chips = [one for one in tree.capacity if one != TOTAL and chip in ("", one)]
    return [_fleet_bar(tree, one) for one in sorted(chips)]


def _fleet_bar(tree: QuotaTree, chip: str) -> FleetBar:
    capacity = tree.capacity[chip]
    shares = [entry.share(chip) for entry in tree.roots]
    own = sum(share.own for share in shares)
    borrowed = sum(share.borrowed for share in shares)
    unusable = max(0, capacity.total - own - borrowed - capacity.free)
    lengths = (("own", own), ("borrowed", borrowed), ("room", capacity.free), ("broken", unusable))
    return FleetBar(
        chip=chip,
        capacity=capacity,
        own=own,
        borrowed=borrowed,
        unusable=unusable,
        segments=_bar_segments(lengths, WIDTH / max(1, capacity.total)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueBars:
    """A queue with its bars, and those below."""

    entry: QueueEntry
    bars: tuple[QuotaBar, ...]
    below: tuple[QueueBars, ...]


def queue_bars(
    entries: Iterable[QueueEntry], *, tree: QuotaTree, chip: str = ""
) -> tuple[QueueBars, ...]:
    """Entries of the tree with their bars; only for one chip if it is given."""
    return tuple(
        QueueBars(
            entry=entry,
            bars=quota_bars(entry.shares, tree=tree, chip=chip),
            below=queue_bars(entry.below, tree=tree, chip=chip),
        )
        for entry in entries
    )


def quota_bars(
    shares: Iterable[QueueChipUsage], *, tree: QuotaTree, chip: str = ""
) -> tuple[QuotaBar, ...]:
    asked = (share for share in shares if not chip or share.chip in (chip, TOTAL))
    return tuple(quota_bar(share, cards=tree.scales.get(share.chip, 1)) for share in asked)


def _bar_segments(lengths: Iterable[tuple[str, int]], scale: float) -> tuple[BarSegment, ...]:
    segments, x = [], 0.0
    for kind, length in lengths:
        if length > 0:
            segments.append(BarSegment(kind=kind, x=round(x, 1), width=round(length * scale, 1)))
            x += length * scale
    return tuple(segments)
