"""Nodes before and after moves, as rows of squares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.utils.translation import gettext as _

from controlplane.domain.rearrangement_pictures import NodePicture, Spot

STEP = 22
SIZE = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Square:
    """A card."""

    #: A ``Spot``, or ``move``.
    kind: str
    #: Of the move that is on it.
    number: str
    room: bool
    x: int

    @property
    def middle(self) -> int:
        return self.x + SIZE // 2

    @property
    def end(self) -> int:
        return self.x + SIZE


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The cards of a node at one time."""

    spots: tuple[Square, ...]
    #: For those who do not see it.
    label: str

    @property
    def width(self) -> int:
        return len(self.spots) * STEP


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A node before and after."""

    name: str
    before: Row
    after: Row


def drawings(pictures: Iterable[NodePicture]) -> list[Drawing]:
    """As they were just worked out."""
    return drawings_kept(asdict(picture) for picture in pictures)


def drawings_kept(pictures: Iterable[Mapping[str, Any]]) -> list[Drawing]:
    """As a rearrangement keeps them."""
    return [
        Drawing(
            name=picture["name"],
            before=_row(picture["before"], ()),
            after=_row(picture["after"], picture["room"]),
        )
        for picture in pictures
    ]


def _row(spots: Sequence[str], room: Sequence[int]) -> Row:
    words = {
        Spot.FREE.value: _("free"),
        Spot.OTHER.value: _("other work"),
        Spot.UNUSABLE.value: _("not usable"),
    }
    named = [words.get(spot) or _("move %(number)s") % {"number": spot} for spot in spots]
    squares = (
        Square(
            kind=spot if spot in words else "move",
            number="" if spot in words else spot,
            room=place in room,
            x=place * STEP + 1,
        )
        for place, spot in enumerate(spots)
    )
    return Row(spots=tuple(squares), label=", ".join(named))
