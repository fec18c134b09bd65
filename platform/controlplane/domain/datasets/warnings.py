"""What is odd in a file that is good: rows are told, and kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from controlplane.domain.datasets.splits import Split

#: Characters of a row beyond which training is likely to cut it.
LONG_ROW = 16384
#: Columns by which the usual formats of chats refer to what is no text.
MEDIA_COLUMNS = frozenset({"image", "images", "audio", "audios", "video", "videos"})
#: Rows that are named of each kind.
ROWS_NAMED = 10


class WarningKind(StrEnum):
    #: Equal to an earlier row of its split: learned twice.
    REPEATED = "repeated"
    #: Equal to an earlier row of another split: what is measured there was learned by heart.
    LEAKED = "leaked"
    #: More than :data:`LONG_ROW` characters.
    LONG = "long"
    #: Has images, audio or video beside its text, which are not kept.
    MEDIA = "media"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWarning:
    kind: WarningKind
    #: Rows that it is true of.
    total: int
    #: The first of them, by their numbers in the file.
    rows: tuple[int, ...]


class RowWarnings:
    """Takes rows one by one; its memory does not grow with them."""

    def __init__(self) -> None:
        self._totals: Counter[WarningKind] = Counter()
        self._rows: dict[WarningKind, list[int]] = {kind: [] for kind in WarningKind}

    def take(
        self, row: int, *, split: Split, equal_in: Split | None, characters: int, media: bool
    ) -> None:
        """:param equal_in: the split of an earlier row with the same content.
        :param media: whether it has what is neither text nor kept.
        """
        if equal_in is not None:
            self._note(WarningKind.REPEATED if equal_in is split else WarningKind.LEAKED, row)
        if characters > LONG_ROW:
            self._note(WarningKind.LONG, row)
        if media:
            self._note(WarningKind.MEDIA, row)

    def found(self) -> tuple[RowWarning, ...]:
        """Those that are true of at least one row."""
        return tuple(
            RowWarning(kind=kind, total=self._totals[kind], rows=tuple(self._rows[kind]))
            for kind in WarningKind
            if self._totals[kind]
        )

    def _note(self, kind: WarningKind, row: int) -> None:
        self._totals[kind] += 1
        if len(self._rows[kind]) < ROWS_NAMED:
            self._rows[kind].append(row)
