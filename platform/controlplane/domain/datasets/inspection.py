"""Inspection of an uploaded file in one pass, and output of its canonical rows in a second.

::

    inspection = inspect(stream, filename="addresses.csv")  # statistics, or DatasetRefused
    for split, line in inspection.canonical(again):         # the same bytes from their start
        spool[split].write(line)

Neither pass holds more than one row, except for a JSON array, which is read whole.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import BinaryIO

from controlplane.domain.datasets import schemas
from controlplane.domain.datasets.conversations import (
    ChatMessage,
    MessageRole,
    RowRefused,
    printable_column_name,
)
from controlplane.domain.datasets.file_formats import (
    FileFormat,
    Record,
    open_dataset_file,
    read_records,
)
from controlplane.domain.datasets.schemas import ColumnMapping, RowLayout, Schema
from controlplane.domain.datasets.splits import Split, SplitAssigner, SplitFractions
from controlplane.domain.datasets.validation import FileLimits, FileProblemLog

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


class RowStatisticsCollector:
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
            shown = tuple(_shorten_message(message) for message in messages)
            other = (
                rejected
                and _shorten_message(
                    ChatMessage(role=MessageRole.ASSISTANT, content=rejected)
                ).content
            )
            self.preview.append(PreviewRow(row=row, split=split, messages=shown, rejected=other))

    def statistics(self) -> DatasetStatistics:
        """Requires at least one row."""
        return DatasetStatistics(
            rows={split: self._rows[split] for split in Split},
            roles={role: self._roles[role] for role in MessageRole},
            prompt=_length_statistics(self._prompts),
            answer=_length_statistics(self._answers),
            histogram=tuple(self._histogram),
            characters=self._characters,
        )


def _shorten_message(message: ChatMessage) -> ChatMessage:
    if len(message.content) <= PREVIEW_CHARACTERS:
        return message
    return ChatMessage(role=message.role, content=message.content[:PREVIEW_CHARACTERS] + "…")


def _length_statistics(counts: Counter[int]) -> LengthStatistics:
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
            self._record_warning(
                WarningKind.REPEATED if duplicate_of is split else WarningKind.LEAKED, row
            )
        if characters > LONG_ROW:
            self._record_warning(WarningKind.LONG, row)
        if media:
            self._record_warning(WarningKind.MEDIA, row)

    def found(self) -> tuple[RowWarning, ...]:
        """Warnings that apply to at least one row."""
        return tuple(
            RowWarning(kind=kind, total=self._totals[kind], rows=tuple(self._rows[kind]))
            for kind in WarningKind
            if self._totals[kind]
        )

    def _record_warning(self, kind: WarningKind, row: int) -> None:
        self._totals[kind] += 1
        if len(self._rows[kind]) < ROWS_NAMED:
            self._rows[kind].append(row)


DEFAULT_LIMITS = FileLimits()
DEFAULT_FRACTIONS = SplitFractions()

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
#: Ignored column names that are recorded for display.
_IGNORED_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectionOptions:
    """Everything except the bytes that the result depends on."""

    filename: str
    limits: FileLimits
    mapping: ColumnMapping | None
    fractions: SplitFractions


@dataclass(frozen=True, slots=True, kw_only=True)
class CanonicalFile:
    """One split as canonical JSON Lines."""

    rows: int
    #: Bytes.
    size: int
    #: ``sha256:<64 hex>`` of its bytes.
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """Content and statistics of a valid file."""

    format: FileFormat
    schema: Schema
    #: The columns and their roles as they were read.
    columns: ColumnMapping
    #: Up to ``_IGNORED_SHOWN`` columns without a role, in order of appearance.
    ignored_columns: tuple[str, ...]
    rows: int
    #: Rows equal to an earlier one. They are kept.
    duplicates: int
    #: Whether the file names the split of each row.
    splits_given: bool
    #: Splits with rows, in the order train, validation, test.
    files: Mapping[Split, CanonicalFile]
    #: ``sha256:<64 hex>`` over the lines ``<split> <digest of its file>``: equal for equal rows in
    #: equal splits, whatever the format of the upload.
    digest: str
    statistics: DatasetStatistics
    #: Warnings with the rows that they concern.
    warnings: tuple[RowWarning, ...]
    preview: tuple[PreviewRow, ...]
    #: Options of this inspection, to read the file the same way again.
    options: InspectionOptions

    def canonical(self, stream: BinaryIO | Iterable[bytes]) -> Iterator[tuple[Split, bytes]]:
        """Split and canonical line of each row, from the file's bytes read again.

        :raises DatasetRefused: if the bytes are not those that were inspected and have a problem.
        """
        for read in _valid_rows(
            stream, self.options, FileProblemLog(limit=self.options.limits.problems)
        ):
            yield read.split, read.line


@dataclass(frozen=True, slots=True, kw_only=True)
class _InspectedRow:
    number: int
    split: Split
    messages: tuple[ChatMessage, ...]
    #: The rejected answer of a preference row; else empty.
    rejected: str
    line: bytes
    #: The split of an earlier row with the same content.
    duplicate_of: Split | None
    #: The row has images, audio or video, which are not stored.
    media: bool


class _FileState:
    """State of the whole file while its rows are read."""

    def __init__(self, options: InspectionOptions) -> None:
        self.splitter = SplitAssigner(options.fractions)
        self.format = FileFormat.JSONL
        self.layout: RowLayout | None = None
        self.ignored: dict[str, None] = {}


def inspect_dataset(
    stream: BinaryIO | Iterable[bytes],
    *,
    filename: str,
    limits: FileLimits = DEFAULT_LIMITS,
    columns: ColumnMapping | None = None,
    fractions: SplitFractions = DEFAULT_FRACTIONS,
) -> Inspection:
    """Inspect the file.

    ``columns`` maps columns to roles if their names are not standard; ``fractions`` hold rows out if the file has
    no ``split`` column.

    :raises DatasetRefused: if anything is wrong with the file.
    """
    options = InspectionOptions(
        filename=filename, limits=limits, mapping=columns, fractions=fractions
    )
    log = FileProblemLog(limit=limits.problems)
    context = _FileState(options)
    profiler = RowStatisticsCollector(preview=limits.preview)
    warnings = RowWarnings()
    writers = {split: _CanonicalFileDigester() for split in Split}
    for row in _valid_rows(stream, options, log, context):
        profiler.add(row.number, row.split, row.messages, rejected=row.rejected)
        warnings.add(
            row.number,
            split=row.split,
            duplicate_of=row.duplicate_of,
            characters=sum(len(message.content) for message in row.messages) + len(row.rejected),
            media=row.media,
        )
        writers[row.split].add(row.line)
    layout = context.layout
    if layout is None:
        if context.format is FileFormat.CSV:
            log.stop("dataset.file.no_rows_below_header", "the file has no rows below its header")
        log.stop("dataset.file.no_rows", "the file has no rows")
    files = {split: writer.file() for split, writer in writers.items() if writer.rows}
    return Inspection(
        format=context.format,
        schema=layout.schema,
        columns=layout.columns,
        ignored_columns=tuple(context.ignored),
        rows=context.splitter.rows,
        duplicates=context.splitter.duplicates,
        splits_given=bool(layout.columns.split),
        files=files,
        digest=_version_digest(files),
        statistics=profiler.statistics(),
        warnings=warnings.found(),
        preview=tuple(profiler.preview),
        options=options,
    )


def canonical_line(messages: Sequence[ChatMessage], *, rejected: str = "") -> bytes:
    """A row as compact JSON in UTF-8 with a line feed.

    ``rejected`` is the rejected answer of a preference row.

    :raises RowRefused: if a content has half of a surrogate pair.
    """
    row: dict[str, object] = {
        "messages": [{"role": m.role.value, "content": m.content} for m in messages]
    }
    if rejected:
        row["rejected"] = rejected
    try:
        return (_ENCODER.encode(row) + "\n").encode()
    except UnicodeEncodeError:
        raise RowRefused(
            "",
            "dataset.row.unpaired_surrogate",
            "the value contains an unpaired surrogate (\\ud800 to \\udfff)",
        ) from None


def _valid_rows(
    stream: BinaryIO | Iterable[bytes],
    options: InspectionOptions,
    log: FileProblemLog,
    context: _FileState | None = None,
) -> Iterator[_InspectedRow]:
    """Every valid row; refuses the file at its end if a row was invalid."""
    context = context or _FileState(options)
    source = open_dataset_file(stream, filename=options.filename, limits=options.limits, log=log)
    context.format = source.format
    for record in read_records(source, limits=options.limits, log=log):
        if context.layout is None:
            context.layout = _detect_layout(record, options, log)
        row = _inspect_row(record, context.layout, context.splitter, log)
        if len(context.ignored) < _IGNORED_SHOWN:
            _record_ignored_columns(record, context.layout, context.ignored)
        if row is not None:
            yield row
    log.raise_if_any()


def _detect_layout(record: Record, options: InspectionOptions, log: FileProblemLog) -> RowLayout:
    number, fields = record
    try:
        return schemas.detect_layout(tuple(fields), options.mapping)
    except RowRefused as refused:
        log.stop(
            "dataset.file.columns_missing",
            "columns are missing: {reason}",
            reason=str(refused),
            row=number,
            column=refused.column,
        )


def _inspect_row(
    record: Record, layout: RowLayout, splitter: SplitAssigner, log: FileProblemLog
) -> _InspectedRow | None:
    number, fields = record
    try:
        messages = schemas.read_messages(fields, layout)
        rejected = schemas.read_rejected_answer(fields, layout)
        given = schemas.read_row_split(fields, layout)
        line = canonical_line(messages, rejected=rejected)
    except RowRefused as refused:
        log.add(str(refused), row=number, column=refused.column)
        return None
    split = splitter.assign(line, given=given)
    return _InspectedRow(
        number=number,
        split=split,
        messages=messages,
        rejected=rejected,
        line=line,
        duplicate_of=splitter.duplicate_of,
        media=any(
            value
            for name, value in fields.items()
            if name in MEDIA_COLUMNS and name not in layout.columns.column_names()
        ),
    )


def _record_ignored_columns(record: Record, layout: RowLayout, ignored: dict[str, None]) -> None:
    used = layout.columns.column_names()
    for name in record[1]:
        if name not in used and len(ignored) < _IGNORED_SHOWN:
            ignored[printable_column_name(name)] = None


class _CanonicalFileDigester:
    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.rows = 0
        self._size = 0

    def add(self, line: bytes) -> None:
        self._hash.update(line)
        self.rows += 1
        self._size += len(line)

    def file(self) -> CanonicalFile:
        digest = f"sha256:{self._hash.hexdigest()}"
        return CanonicalFile(rows=self.rows, size=self._size, digest=digest)


def _version_digest(files: Mapping[Split, CanonicalFile]) -> str:
    listing = "".join(f"{split} {file.digest}\n" for split, file in files.items())
    return f"sha256:{hashlib.sha256(listing.encode()).hexdigest()}"
