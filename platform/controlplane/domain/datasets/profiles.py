"""What a dataset is like: counts, lengths, a preview."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controlplane.domain.datasets.conversations import Message, Role
from controlplane.domain.datasets.splits import Split

#: Lower edges of the histogram's buckets, in characters of a whole row; the last one is open.
HISTOGRAM_EDGES = (0, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)

#: Characters of one message that a preview shows.
PREVIEW_CHARACTERS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Characters: the nearest-rank median and 95th percentile, and the most."""

    p50: int
    p95: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewRow:
    row: int
    split: Split
    #: Contents are cut at :data:`PREVIEW_CHARACTERS` with an ellipsis.
    messages: tuple[Message, ...]
    #: The other answer of a preference; else empty.
    rejected: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    rows: Mapping[Split, int]
    #: Messages of each role.
    roles: Mapping[Role, int]
    #: Everything before the last answer.
    prompt: Lengths
    #: The last answer.
    answer: Lengths
    #: Rows per bucket of :data:`HISTOGRAM_EDGES`.
    histogram: tuple[int, ...]
    #: Of all rows together.
    characters: int


class Profiler:
    """Takes rows one by one. Its memory grows with the number of different lengths only."""

    def __init__(self, *, preview: int) -> None:
        self._preview_rows = preview
        self._rows: Counter[Split] = Counter()
        self._roles: Counter[Role] = Counter()
        self._prompts: Counter[int] = Counter()
        self._answers: Counter[int] = Counter()
        self._histogram = [0] * len(HISTOGRAM_EDGES)
        self._characters = 0
        self.preview: list[PreviewRow] = []

    def take(
        self, row: int, split: Split, messages: Sequence[Message], *, rejected: str = ""
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
            other = rejected and _shortened(Message(role=Role.ASSISTANT, content=rejected)).content
            self.preview.append(PreviewRow(row=row, split=split, messages=shown, rejected=other))

    def statistics(self) -> Statistics:
        """Of at least one row."""
        return Statistics(
            rows={split: self._rows[split] for split in Split},
            roles={role: self._roles[role] for role in Role},
            prompt=_lengths(self._prompts),
            answer=_lengths(self._answers),
            histogram=tuple(self._histogram),
            characters=self._characters,
        )


def _shortened(message: Message) -> Message:
    if len(message.content) <= PREVIEW_CHARACTERS:
        return message
    return Message(role=message.role, content=message.content[:PREVIEW_CHARACTERS] + "…")


def _lengths(counts: Counter[int]) -> Lengths:
    total = counts.total()
    return Lengths(
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
