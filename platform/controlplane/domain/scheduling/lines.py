"""Those who wait, each queue a line of its own, and in it those together who ask for the same.

Thousands wait for few things. A line knows only the first of each kind::

    vision   7B fine-tuning   3, 7, 9, 12 …
             evaluation       5, 6 …

so that a kind is refused at once, however many are of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from operator import attrgetter
from typing import Self, TypeAlias

from controlplane.domain.scheduling.snapshots import ClaimView, Kind, Place

#: Claims of each kind, the first in line first.
ByKind = Mapping[Kind, Sequence[ClaimView]]

#: What is searched for once: a kind, or the uid of a claim that is like no other.
SearchKey: TypeAlias = Kind | str

_place = attrgetter("place")


class Waiting(tuple[ClaimView, ...]):
    """Claims of which somebody knows already who asks for the same."""

    by_kind: ByKind

    @classmethod
    def of(cls, claims: Iterable[ClaimView], by_kind: ByKind) -> Self:
        """:param by_kind: the same claims."""
        waiting = cls(claims)
        waiting.by_kind = by_kind
        return waiting


def by_kind(claims: Sequence[ClaimView]) -> ByKind:
    """The same claims."""
    if isinstance(claims, Waiting):
        return claims.by_kind
    found: dict[Kind, list[ClaimView]] = {}
    for claim in claims:
        found.setdefault(claim.kind, []).append(claim)
    for alike in found.values():
        alike.sort(key=_place)
    return found


class _Alike:
    """Claims of one line that ask for the same; those before ``at`` have left it."""

    __slots__ = ("at", "claims", "kind")

    def __init__(self, kind: Kind | None, claims: Sequence[ClaimView]) -> None:
        self.kind = kind
        self.claims = claims
        self.at = 0

    @property
    def key(self) -> SearchKey:
        return self.claims[self.at].uid if self.kind is None else self.kind


class Line:
    """Claims of one queue; the more urgent, then the older, leaves it first."""

    __slots__ = ("_firsts",)

    def __init__(self) -> None:
        self._firsts: list[tuple[Place, _Alike]] = []

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def add(self, claims: Sequence[ClaimView], kind: Kind | None) -> None:
        """:param claims: the first in line first.
        :param kind: theirs; None for one that is like no other, whatever it asks for.
        """
        if claims:
            heappush(self._firsts, (claims[0].place, _Alike(kind, claims)))

    @property
    def next(self) -> ClaimView:
        _place, alike = self._firsts[0]
        return alike.claims[alike.at]

    @property
    def kind(self) -> Kind | None:
        """Of the next; None if it is like no other."""
        return self._firsts[0][1].kind

    def pop(self) -> ClaimView:
        """The next, which leaves the line."""
        _place, alike = self._firsts[0]
        claim = alike.claims[alike.at]
        alike.at += 1
        if alike.at < len(alike.claims):
            heapreplace(self._firsts, (alike.claims[alike.at].place, alike))
        else:
            heappop(self._firsts)
        return claim

    def drop(self) -> Sequence[ClaimView]:
        """The next and all like it, which leave the line."""
        _place, alike = heappop(self._firsts)
        return alike.claims[alike.at :]

    def search_keys(self) -> Iterator[SearchKey]:
        """Of all in the line."""
        return (alike.key for _, alike in self._firsts)

    def split_first(self) -> Line:
        """A line of the next kind alone, which leaves this one."""
        return Line._of([heappop(self._firsts)])

    def split(self, keys: Collection[SearchKey]) -> Line:
        """A line of those with one of the keys, which leave this one."""
        chosen = [first for first in self._firsts if first[1].key in keys]
        self._firsts = [first for first in self._firsts if first[1].key not in keys]
        heapify(self._firsts)
        return Line._of(chosen)

    @classmethod
    def _of(cls, firsts: list[tuple[Place, _Alike]]) -> Line:
        line = cls()
        line._firsts = firsts
        heapify(firsts)
        return line


def lines_of(claims: Sequence[ClaimView], *, alone: Collection[str] = ()) -> dict[str, Line]:
    """The line of each queue.

    :param alone: uids of claims that are like no other, whatever they ask for.
    """
    lines: dict[str, Line] = {}
    kinds = by_kind(claims)
    apart = [claim for claim in claims if claim.uid in alone] if alone else []
    parted = {claim.kind for claim in apart}
    for kind, alike in kinds.items():
        line = lines.get(kind.queue)
        if line is None:
            line = lines[kind.queue] = Line()
        if kind in parted:
            line.add([claim for claim in alike if claim.uid not in alone], kind)
        else:
            line.add(alike, kind)
    for claim in apart:
        lines[claim.queue].add((claim,), None)
    return lines
