"""Statistics, preview and warnings of a dataset."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from controlplane.domain.datasets.conversations import ChatMessage, MessageRole
from controlplane.domain.datasets.splits import Split

#: Lower edges of the histogram's buckets, in characters of a whole row; the last one is open.
HISTOGRAM_EDGES = (0, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)

#: Characters of one message that a preview shows.
PREVIEW_CHARACTERS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthStatistics:
    """Characters: nearest-rank median and 95th percentile, and maximum."""

    p50: int
    p95: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewRow:
    row: int
    split: Split
    #: Contents are cut at :data:`PREVIEW_CHARACTERS` with an ellipsis.
    messages: tuple[ChatMessage, ...]
    #: The rejected answer of a preference row; else empty.
    rejected: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetStatistics:
    rows: Mapping[Split, int]
    #: Messages of each role.
    roles: Mapping[MessageRole, int]
    #: Everything before the last answer.
    prompt: LengthStatistics
    #: The last answer.
    answer: LengthStatistics
    #: Rows per bucket of :data:`HISTOGRAM_EDGES`.
    histogram: tuple[int, ...]
    #: Characters of all rows.
    characters: int


class Profiler:
    """Collects statistics row by row. Memory grows only with the number of different lengths."""

    def __init__(self, *, preview: int) -> None:
        self._preview_rows = preview
        self._rows: Counter[Split] = Counter()
        self._roles: Counter[MessageRole] = Counter()
        self._prompts: Counter[int] = Counter()
        self._answers: Counter[int] = Counter()
        self._histogram = [0] * len(HISTOGRAM_EDGES)
        self._characters = 0
        self.preview: list[PreviewRow] = []

    def add(
        self, row: int, split: Split, messages: Sequence[ChatMessage], *, rejected: str = ""
    ) -> None:
        self._rows[split] += 1
        self._roles.update(message.role for message in messages)
        *before, last = messages
        prompt = sum(len(message.content) for message in before)
        self._prompts[prompt] += 1
        self._answers[len(last.content)] += 1
        length = prompt + max(len(last.content), len(rejected))
        self._characters += length
        self._histogram[bisect_right(HISTOGRAM_EDGES, length) - 1] += 1
        if len(self.preview) < self._preview_rows:
            shown = tuple(_shortened(message) for message in messages)
            other = (
                rejected
                and _shortened(ChatMessage(role=MessageRole.ASSISTANT, content=rejected)).content
            )
            self.preview.append(PreviewRow(row=row, split=split, messages=shown, rejected=other))

    def statistics(self) -> DatasetStatistics:
        """Requires at least one row."""
        return DatasetStatistics(
            rows={split: self._rows[split] for split in Split},
            roles={role: self._roles[role] for role in MessageRole},
            prompt=_lengths(self._prompts),
            answer=_lengths(self._answers),
            histogram=tuple(self._histogram),
            characters=self._characters,
        )


def _shortened(message: ChatMessage) -> ChatMessage:
    if len(message.content) <= PREVIEW_CHARACTERS:
        return message
    return ChatMessage(role=message.role, content=message.content[:PREVIEW_CHARACTERS] + "…")


def _lengths(counts: Counter[int]) -> LengthStatistics:
    total = counts.total()
    return LengthStatistics(
        p50=_nearest_rank(counts, -(-total * 50 // 100)),
        p95=_nearest_rank(counts, -(-total * 95 // 100)),
        most=max(counts),
    )


def _nearest_rank(counts: Counter[int], rank: int) -> int:
    passed = 0
    for length in sorted(counts):
        passed += counts[length]
        if passed >= rank:
            return length
    raise AssertionError("unreachable: the rank is at most the total")


#: Characters of a row beyond which training is likely to cut it.
LONG_ROW = 16384
#: Columns by which common chat formats refer to media files.
MEDIA_COLUMNS = frozenset({"image", "images", "audio", "audios", "video", "videos"})
#: Row numbers recorded for each kind of warning.
ROWS_NAMED = 10


class WarningKind(StrEnum):
    #: Equal to an earlier row of the same split.
    REPEATED = "repeated"
    #: Equal to an earlier row of another split: test data leaks into training.
    LEAKED = "leaked"
    #: More than :data:`LONG_ROW` characters.
    LONG = "long"
    #: Has images, audio or video, which are not stored.
    MEDIA = "media"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWarning:
    kind: WarningKind
    #: Number of rows that it applies to.
    total: int
    #: The first of them, by row number in the file.
    rows: tuple[int, ...]


class RowWarnings:
    """Collects warnings row by row, in constant memory."""

    def __init__(self) -> None:
        self._totals: Counter[WarningKind] = Counter()
        self._rows: dict[WarningKind, list[int]] = {kind: [] for kind in WarningKind}

    def add(
        self, row: int, *, split: Split, duplicate_of: Split | None, characters: int, media: bool
    ) -> None:
        """:param duplicate_of: the split of an earlier row with the same content.
        :param media: whether the row has images, audio or video, which are not stored.
        """
        if duplicate_of is not None:
            self._record(WarningKind.REPEATED if duplicate_of is split else WarningKind.LEAKED, row)
        if characters > LONG_ROW:
            self._record(WarningKind.LONG, row)
        if media:
            self._record(WarningKind.MEDIA, row)

    def found(self) -> tuple[RowWarning, ...]:
        """Warnings that apply to at least one row."""
        return tuple(
            RowWarning(kind=kind, total=self._totals[kind], rows=tuple(self._rows[kind]))
            for kind in WarningKind
            if self._totals[kind]
        )

    def _record(self, kind: WarningKind, row: int) -> None:
        self._totals[kind] += 1
        if len(self._rows[kind]) < ROWS_NAMED:
            self._rows[kind].append(row)
