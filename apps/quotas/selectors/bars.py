"""Bars of the queue tree: what a queue holds, owes and may have, as parts of one line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from apps.quotas.selectors.queues import Line, Share, Stock, Tree
from controlplane.domain.queue_standings import Standing
from controlplane.domain.quotas import TOTAL

#: Units of a bar from end to end.
WIDTH = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One stretch of a bar."""

    #: ``own``, ``lent``, ``idle``, ``borrowed``, ``room`` up to the cap, or the rest of the ``fleet``; in the
    #: bar of the whole fleet ``broken``, too.
    kind: str
    x: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    share: Share
    parts: tuple[Part, ...]
    #: Where what is reserved ends; None where nothing is.
    reserved_x: float | None
    #: Where the guarantee ends; None where there is none.
    guaranteed_x: float | None

    @property
    def in_all(self) -> bool:
        """It is about all chips together."""
        return self.share.chip == TOTAL

    @property
    def standing(self) -> Standing:
        return self.share.standing


def bar_of(share: Share, *, cards: int) -> Bar:
    """The bar of one queue and chip.

    :param cards: that the whole bar stands for, as ``Tree.scales`` has it.
    """
    standing = share.standing
    lengths = (
        ("own", share.own),
        ("lent", standing.lent),
        ("idle", standing.idle if share.judged else 0),
        ("borrowed", share.borrowed),
    )
    drawn = sum(length for _kind, length in lengths)
    whole = max(cards, drawn)
    cap = whole if standing.cap is None else min(standing.cap, whole)
    room = max(0, cap - drawn)
    scale = WIDTH / whole
    return Bar(
        share=share,
        parts=_parts((*lengths, ("room", room), ("fleet", whole - drawn - room)), scale),
        reserved_x=round(standing.reserved * scale, 1) if standing.reserved else None,
        guaranteed_x=round(standing.guaranteed * scale, 1) if standing.guaranteed else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetBar:
    """All cards of a chip: whose they are, and who has them."""

    chip: str
    stock: Stock
    own: int
    borrowed: int
    #: Held by nobody, but broken or taken out of use.
    unusable: int
    parts: tuple[Part, ...]

    @property
    def held(self) -> int:
        return self.own + self.borrowed


def fleet_bars(tree: Tree, *, chip: str) -> list[FleetBar]:
    """One for each chip that the fleet has, or for the one that was asked for."""
    chips = [one for one in tree.stock if one != TOTAL and chip in ("", one)]
    return [_fleet_bar(tree, one) for one in sorted(chips)]


def _fleet_bar(tree: Tree, chip: str) -> FleetBar:
    stock = tree.stock[chip]
    shares = [line.share(chip) for line in tree.tops]
    own = sum(share.own for share in shares)
    borrowed = sum(share.borrowed for share in shares)
    unusable = max(0, stock.total - own - borrowed - stock.free)
    lengths = (("own", own), ("borrowed", borrowed), ("room", stock.free), ("broken", unusable))
    return FleetBar(
        chip=chip,
        stock=stock,
        own=own,
        borrowed=borrowed,
        unusable=unusable,
        parts=_parts(lengths, WIDTH / max(1, stock.total)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnLine:
    """A queue with its bars, and those below."""

    line: Line
    bars: tuple[Bar, ...]
    below: tuple[DrawnLine, ...]


def drawn(lines: Iterable[Line], *, tree: Tree, chip: str = "") -> tuple[DrawnLine, ...]:
    """Those lines of the tree with bars; of one chip only if it is given."""
    return tuple(
        DrawnLine(
            line=line,
            bars=bars_of(line.shares, tree=tree, chip=chip),
            below=drawn(line.below, tree=tree, chip=chip),
        )
        for line in lines
    )


def bars_of(shares: Iterable[Share], *, tree: Tree, chip: str = "") -> tuple[Bar, ...]:
    asked = (share for share in shares if not chip or share.chip in (chip, TOTAL))
    return tuple(bar_of(share, cards=tree.scales.get(share.chip, 1)) for share in asked)


def _parts(lengths: Iterable[tuple[str, int]], scale: float) -> tuple[Part, ...]:
    parts, x = [], 0.0
    for kind, length in lengths:
        if length > 0:
            parts.append(Part(kind=kind, x=round(x, 1), width=round(length * scale, 1)))
            x += length * scale
    return tuple(parts)
