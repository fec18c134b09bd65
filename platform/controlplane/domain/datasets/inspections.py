"""Reading an uploaded file: once to judge it, once more to write it down.

::

    inspection = inspect(stream, filename="addresses.csv")  # statistics, or DatasetRefused
    for split, line in inspection.canonical(again):         # the same bytes from their start
        spool[split].write(line)

Neither pass holds more than one row, except for a JSON array, which is read whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from controlplane.domain.datasets import schemas
from controlplane.domain.datasets.conversations import Message, RowRefused, printable
from controlplane.domain.datasets.formats import Record, records
from controlplane.domain.datasets.profiles import PreviewRow, Profiler, Statistics
from controlplane.domain.datasets.refusals import Limits, ProblemLog
from controlplane.domain.datasets.schemas import ColumnMapping, Layout, Schema
from controlplane.domain.datasets.sources import Format, open_source
from controlplane.domain.datasets.splits import Fractions, Split, Splitter
from controlplane.domain.datasets.warnings import MEDIA_COLUMNS, RowWarning, RowWarnings

DEFAULT_LIMITS = Limits()
DEFAULT_FRACTIONS = Fractions()

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
#: Names of columns without a part that are kept to be shown.
_IGNORED_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Everything but the bytes that the result depends on."""

    filename: str
    limits: Limits
    mapping: ColumnMapping | None
    fractions: Fractions


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
    """A file that is good, and what is in it."""

    format: Format
    schema: Schema
    #: The columns as they were read.
    columns: ColumnMapping
    #: Some of the columns that have no part, in the order in which they were met.
    ignored_columns: tuple[str, ...]
    rows: int
    #: Rows that are equal to an earlier one. They are kept.
    duplicates: int
    #: Whether the file names the split of each row.
    splits_given: bool
    #: The splits that have rows, in the order train, validation, test.
    files: Mapping[Split, CanonicalFile]
    #: ``sha256:<64 hex>`` over the lines ``<split> <digest of its file>``: equal for equal rows in
    #: equal splits, whatever the format of the upload.
    digest: str
    statistics: Statistics
    #: What is odd in it, with the rows where it is.
    warnings: tuple[RowWarning, ...]
    preview: tuple[PreviewRow, ...]
    #: How the file was read, so that it can be read the same way again.
    reading: Reading

    def canonical(self, stream: BinaryIO | Iterable[bytes]) -> Iterator[tuple[Split, bytes]]:
        """Each row's split and canonical line, from the file's bytes read again.

        :raises DatasetRefused: if they are not the bytes that were inspected and have a problem.
        """
        for read in _rows(stream, self.reading, ProblemLog(limit=self.reading.limits.problems)):
            yield read.split, read.line


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    number: int
    split: Split
    messages: tuple[Message, ...]
    #: The other answer of a preference; else empty.
    rejected: str
    line: bytes
    #: The split of an earlier row with the same content.
    equal_in: Split | None
    #: It has images, audio or video, which are left out.
    media: bool


class _Context:
    """What is learnt of the whole file while its rows pass."""

    def __init__(self, reading: Reading) -> None:
        self.splitter = Splitter(reading.fractions)
        self.format = Format.JSONL
        self.layout: Layout | None = None
        self.ignored: dict[str, None] = {}


def inspect(
    stream: BinaryIO | Iterable[bytes],
    *,
    filename: str,
    limits: Limits = DEFAULT_LIMITS,
    columns: ColumnMapping | None = None,
    fractions: Fractions = DEFAULT_FRACTIONS,
) -> Inspection:
    """What the file holds.

    ``columns`` says which column plays which part where the names are none that are known;
    ``fractions`` hold rows out where the file has no ``split`` column.

    :raises DatasetRefused: if anything is wrong with it.
    """
    reading = Reading(filename=filename, limits=limits, mapping=columns, fractions=fractions)
    log = ProblemLog(limit=limits.problems)
    context = _Context(reading)
    profiler = Profiler(preview=limits.preview)
    warnings = RowWarnings()
    writers = {split: _Digester() for split in Split}
    for row in _rows(stream, reading, log, context):
        profiler.take(row.number, row.split, row.messages, rejected=row.rejected)
        warnings.take(
            row.number,
            split=row.split,
            equal_in=row.equal_in,
            characters=sum(len(message.content) for message in row.messages) + len(row.rejected),
            media=row.media,
        )
        writers[row.split].take(row.line)
    layout = context.layout
    if layout is None:
        below = " below its header" if context.format is Format.CSV else ""
        log.stop(f"the file has no rows{below}")
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
        reading=reading,
    )


def canonical_line(messages: Sequence[Message], *, rejected: str = "") -> bytes:
    """The one way to write a row: compact JSON in UTF-8, with its line feed.

    ``rejected`` is the other answer of a preference.

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
        raise RowRefused("has half of a surrogate pair (\\ud800 to \\udfff)") from None


def _rows(
    stream: BinaryIO | Iterable[bytes],
    reading: Reading,
    log: ProblemLog,
    context: _Context | None = None,
) -> Iterator[_Row]:
    """Every good row; refuses the file at its end if one was not good."""
    context = context or _Context(reading)
    source = open_source(stream, filename=reading.filename, limits=reading.limits, log=log)
    context.format = source.format
    for record in records(source, limits=reading.limits, log=log):
        if context.layout is None:
            context.layout = _layout(record, reading, log)
        row = _row(record, context.layout, context.splitter, log)
        if len(context.ignored) < _IGNORED_SHOWN:
            _note_ignored(record, context.layout, context.ignored)
        if row is not None:
            yield row
    log.raise_if_any()


def _layout(record: Record, reading: Reading, log: ProblemLog) -> Layout:
    number, fields = record
    try:
        return schemas.recognise(tuple(fields), reading.mapping)
    except RowRefused as refused:
        log.stop(f"columns are missing: {refused}", row=number, column=refused.column)


def _row(record: Record, layout: Layout, splitter: Splitter, log: ProblemLog) -> _Row | None:
    number, fields = record
    try:
        messages = schemas.read(fields, layout)
        rejected = schemas.read_rejected(fields, layout)
        given = schemas.read_split(fields, layout)
        line = canonical_line(messages, rejected=rejected)
    except RowRefused as refused:
        log.add(str(refused), row=number, column=refused.column)
        return None
    split = splitter.take(line, given=given)
    return _Row(
        number=number,
        split=split,
        messages=messages,
        rejected=rejected,
        line=line,
        equal_in=splitter.equal_in,
        media=any(
            value
            for name, value in fields.items()
            if name in MEDIA_COLUMNS and name not in layout.columns.names()
        ),
    )


def _note_ignored(record: Record, layout: Layout, ignored: dict[str, None]) -> None:
    used = layout.columns.names()
    for name in record[1]:
        if name not in used and len(ignored) < _IGNORED_SHOWN:
            ignored[printable(name)] = None


class _Digester:
    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.rows = 0
        self._size = 0

    def take(self, line: bytes) -> None:
        self._hash.update(line)
        self.rows += 1
        self._size += len(line)

    def file(self) -> CanonicalFile:
        digest = f"sha256:{self._hash.hexdigest()}"
        return CanonicalFile(rows=self.rows, size=self._size, digest=digest)


def _version_digest(files: Mapping[Split, CanonicalFile]) -> str:
    listing = "".join(f"{split} {file.digest}\n" for split, file in files.items())
    return f"sha256:{hashlib.sha256(listing.encode()).hexdigest()}"
