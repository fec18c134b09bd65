"""File formats: from bytes to numbered lines of text, and from text to numbered records.

JSON Lines, a JSON array and CSV are supported. An invalid row of JSON Lines, or a CSV row with too few fields, is
recorded and reading continues. Problems that make the rest unreadable (broken JSON inside an array, an open quote)
stop it.
"""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import PurePath
from typing import Any, BinaryIO

from controlplane.domain.common.reasons import Parameter, Reason, ReasonedError
from controlplane.domain.common.resources import KIB, format_bytes
from controlplane.domain.datasets.validation import FileLimits, FileProblemLog

_CHUNK_SIZE = 256 * KIB
_HEAD = 4 * KIB

#: First bytes of other file types that are commonly uploaded by mistake.
_MAGIC = (
    (b"PK\x03\x04", "a ZIP archive (an Excel workbook .xlsx is one)"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document (.xls or .doc)"),
    (b"%PDF-", "a PDF document"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x7fELF", "a program"),
    (b"\x93NUMPY", "a NumPy array"),
)
_TAR_MAGIC = (257, b"ustar")

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    # Before UTF-16, whose little-endian mark is a prefix of this one.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

ACCEPTED = Reason(
    "dataset.file.accepted_formats",
    "JSON Lines (.jsonl), a JSON array (.json) or CSV (.csv), as UTF-8 text",
)


class FileFormat(StrEnum):
    JSONL = "jsonl"
    JSON = "json"
    CSV = "csv"


class TextDecodingFailed(ReasonedError):
    """The bytes cannot be decoded as text from this line on."""

    def __init__(self, line: int, code: str, template: str, /, **params: Parameter) -> None:
        super().__init__(code, template, **params)
        self.line = line


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedFile:
    format: FileFormat
    #: (line number from 1, text with its line feed). Raises :class:`TextDecodingFailed`.
    lines: Iterator[tuple[int, str]]


def open_dataset_file(
    stream: BinaryIO | Iterable[bytes], *, filename: str, limits: FileLimits, log: FileProblemLog
) -> OpenedFile:
    """Detect format and encoding of the file and open its text.

    :raises DatasetRefused: if it is empty, too large, or not text.
    """
    head, chunks = _peek_start(_limit_file_size(_read_chunks(stream), limits=limits, log=log))
    _refuse_unsupported_file_types(head, log)
    mark, encoding = next(
        (found for found in _BYTE_ORDER_MARKS if head.startswith(found[0])), (b"", "utf-8")
    )
    chunks = _without_prefix(chunks, mark)
    if encoding != "utf-8":
        chunks = _transcode_to_utf8(chunks, encoding, start=len(mark))
    elif head.count(0) * 4 > len(head):
        log.stop(
            "dataset.file.utf16_without_mark",
            "the file looks like UTF-16 without a byte order mark (many bytes are zero); save "
            "it as UTF-8",
        )
    try:
        start, chunks = _peek_start(chunks)
    except TextDecodingFailed as broken:
        log.stop(str(broken), row=broken.line)
    if not start.strip():
        log.stop("dataset.file.blank", "the file is empty: it begins with white space only")
    kind = _detect_format(start.lstrip(), filename, log)
    longest = limits.array_size if kind is FileFormat.JSON else limits.row_size
    return OpenedFile(format=kind, lines=_split_lines(chunks, longest=longest, start=len(mark)))


def _read_chunks(stream: BinaryIO | Iterable[bytes]) -> Iterator[bytes]:
    read = getattr(stream, "read", None)
    if read is None:
        yield from stream
        return
    while chunk := read(_CHUNK_SIZE):
        yield chunk


def _limit_file_size(
    chunks: Iterable[bytes], *, limits: FileLimits, log: FileProblemLog
) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > limits.size:
            log.stop(
                "dataset.file.too_large",
                "the file is larger than {limit}; split it",
                limit=format_bytes(limits.size),
            )
        yield chunk


def _peek_start(chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes, and all pieces including them."""
    seen: list[bytes] = []
    size = 0
    while size < _HEAD and (chunk := next(chunks, None)) is not None:
        seen.append(chunk)
        size += len(chunk)
    return b"".join(seen)[:_HEAD], chain(seen, chunks)


def _without_prefix(chunks: Iterable[bytes], prefix: bytes) -> Iterator[bytes]:
    left = len(prefix)
    for chunk in chunks:
        yield chunk[left:]
        left = max(left - len(chunk), 0)


def _refuse_unsupported_file_types(head: bytes, log: FileProblemLog) -> None:
    if not head:
        log.stop("dataset.file.empty", "the file is empty (0 bytes)")
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            log.stop(_wrong_format(kind))
    place, magic = _TAR_MAGIC
    if head[place:].startswith(magic):
        log.stop(_wrong_format("a tar archive"))


def _wrong_format(found: str) -> Reason:
    return Reason(
        "dataset.file.wrong_format",
        "the content of the file is {found}; expected {expected}",
        found=found,
        expected=ACCEPTED,
    )


def _detect_format(start: bytes, filename: str, log: FileProblemLog) -> FileFormat:
    """By the file name's suffix if it is known, else by the first character."""
    suffix = PurePath(filename).suffix.lower()
    by_content = {b"{": FileFormat.JSONL, b"[": FileFormat.JSON}.get(start[:1], FileFormat.CSV)
    if suffix in (".jsonl", ".ndjson", ".json"):
        return FileFormat.JSON if by_content is FileFormat.JSON else FileFormat.JSONL
    if suffix in (".csv", ".tsv") and by_content is not FileFormat.CSV:
        name = {FileFormat.JSONL: "JSON Lines (.jsonl)", FileFormat.JSON: "a JSON array (.json)"}[
            by_content
        ]
        log.stop(
            "dataset.file.wrong_suffix",
            "the file is named {suffix}, but its content is {format}; rename it",
            suffix=suffix,
            format=name,
        )
    return by_content


def _transcode_to_utf8(chunks: Iterable[bytes], encoding: str, *, start: int) -> Iterator[bytes]:
    """The same text as UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)()
    line, offset = 1, start
    for chunk, final in chain(((chunk, False) for chunk in chunks), ((b"", True),)):
        try:
            text = decoder.decode(chunk, final)
        except UnicodeDecodeError as error:
            at = offset + len(chunk) - len(error.object) + error.start
            line += error.object[: error.start].decode(encoding, "ignore").count("\n")
            raise TextDecodingFailed(
                line,
                "dataset.file.invalid_byte",
                "byte {position} of the file is not {encoding}: {error}",
                position=f"{at:,}",
                encoding=encoding.upper(),
                error=error.reason,
            ) from None
        offset += len(chunk)
        line += text.count("\n")
        if text:
            yield text.encode()


def _split_lines(chunks: Iterable[bytes], *, longest: int, start: int) -> Iterator[tuple[int, str]]:
    number, offset = 1, start
    pending: list[bytes] = []
    size = 0
    for chunk in chunks:
        pending.append(chunk)
        size += len(chunk)
        if b"\n" in chunk:
            parts = b"".join(pending).split(b"\n")
            pending = [parts.pop()]
            size = len(pending[0])
            for part in parts:
                yield (
                    number,
                    _decode_line(part, number=number, offset=offset, longest=longest) + "\n",
                )
                number += 1
                offset += len(part) + 1
        if size > longest:
            break
    if size:
        yield number, _decode_line(b"".join(pending), number=number, offset=offset, longest=longest)


def _decode_line(line: bytes, *, number: int, offset: int, longest: int) -> str:
    if len(line) > longest:
        raise TextDecodingFailed(
            number,
            "dataset.file.line_too_long",
            "the line is longer than {limit}",
            limit=format_bytes(longest),
        )
    if 0 in line:
        at = offset + line.index(0)
        raise TextDecodingFailed(
            number,
            "dataset.file.nul_byte",
            "byte {position} of the file is NUL, which is not allowed in text",
            position=f"{at:,}",
        )
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        at = offset + error.start
        value = f"0x{line[error.start]:02x}"
        if _is_gb18030(line):
            raise TextDecodingFailed(
                number,
                "dataset.file.gb18030",
                "byte {position} of the file ({value}) is not UTF-8: {error}; the file looks like "
                "GB18030 (GBK): save it as UTF-8",
                position=f"{at:,}",
                value=value,
                error=error.reason,
            ) from None
        raise TextDecodingFailed(
            number,
            "dataset.file.not_utf8",
            "byte {position} of the file ({value}) is not UTF-8: {error}",
            position=f"{at:,}",
            value=value,
            error=error.reason,
        ) from None


def _is_gb18030(line: bytes) -> bool:
    """Whether the line decodes as GB18030 and its non-ASCII characters are mostly Chinese."""
    try:
        text = line.decode("gb18030")
    except UnicodeDecodeError:
        return False
    foreign = [character for character in text if not character.isascii()]
    chinese = sum(
        "\u4e00" <= character <= "\u9fff" or "\u3000" <= character <= "\u303f"
        for character in foreign
    )
    return chinese * 2 > len(foreign)


#: Row number and fields. Values are JSON values; in a CSV file always text.
Record = tuple[int, dict[str, Any]]

_DELIMITERS = (",", "\t", ";")
_DECODER = json.JSONDecoder()
_BLANK = " \t\r\n"


def read_records(
    source: OpenedFile, *, limits: FileLimits, log: FileProblemLog
) -> Iterator[Record]:
    """Every record of the file.

    :raises DatasetRefused: if the rest cannot be read, or there are too many rows.
    """
    if source.format is FileFormat.JSONL:
        found = _json_lines(source, log)
    elif source.format is FileFormat.JSON:
        found = _json_array(source, limits, log)
    else:
        found = _read_csv_records(source, limits, log)
    for count, record in enumerate(found, 1):
        if count > limits.rows:
            log.stop(
                "dataset.file.too_many_rows",
                "the file has more than {limit} rows; split it",
                limit=f"{limits.rows:,}",
                row=record[0],
            )
        yield record


def parse_json(text: str) -> Any:
    """The parsed value.

    :raises ValueError: if it is not valid JSON; the message names the position and what was expected.
    """
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(_describe_syntax_error(error)) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(_describe_limit_error(error)) from None


def describe_json_type(value: object) -> str:
    """The type of a JSON value: ``a number``, ``an array``."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return Reason("json.type.boolean", "a boolean")
    if isinstance(value, str):
        return Reason("json.type.text", "text")
    if isinstance(value, int | float):
        return Reason("json.type.number", "a number")
    if isinstance(value, list):
        return Reason("json.type.array", "an array")
    return Reason("json.type.object", "an object")


def _record_not_object_reason(value: object) -> Reason:
    return Reason(
        "dataset.row.not_a_json_object",
        "the row must be a JSON object, not {type}",
        type=describe_json_type(value),
    )


def _describe_syntax_error(error: json.JSONDecodeError) -> str:
    expected = error.msg.replace("Expecting", "expected", 1)
    detail = f"{expected[0].lower()}{expected[1:]}"
    if error.lineno > 1:
        return Reason(
            "dataset.row.invalid_json_line",
            "the value is not valid JSON at line {line}, column {column}: {detail}",
            line=f"{error.lineno:,}",
            column=f"{error.colno:,}",
            detail=detail,
        )
    return Reason(
        "dataset.row.invalid_json",
        "the value is not valid JSON at column {column}: {detail}",
        column=f"{error.colno:,}",
        detail=detail,
    )


def _describe_limit_error(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return Reason(
            "dataset.row.json_too_deep", "the value is not readable JSON: it is nested too deeply"
        )
    return Reason(
        "dataset.row.json_number_too_long",
        "the value is not readable JSON: it has a number that is too long",
    )


def _json_lines(source: OpenedFile, log: FileProblemLog) -> Iterator[Record]:
    try:
        for row, line in source.lines:
            if line.isspace():
                continue
            try:
                value = parse_json(line)
            except ValueError as error:
                log.add(
                    "dataset.row.invalid_json_lines",
                    "{error} (each line must be one JSON object)",
                    error=str(error),
                    row=row,
                )
                continue
            if isinstance(value, dict):
                yield row, value
            else:
                log.add(_record_not_object_reason(value), row=row)
    except TextDecodingFailed as broken:
        log.stop(str(broken), row=broken.line)


def _json_array(source: OpenedFile, limits: FileLimits, log: FileProblemLog) -> Iterator[Record]:
    text = _whole_text(source, limits, log)
    place = _skip_blanks(text, _skip_blanks(text, 0) + 1)
    row = 0
    while text[place : place + 1] != "]" or row:
        row += 1
        try:
            value, end = _DECODER.raw_decode(text, place)
        except json.JSONDecodeError as error:
            log.stop(_describe_syntax_error(error), row=row)
        except (ValueError, RecursionError) as error:
            log.stop(_describe_limit_error(error), row=row)
        if end - place > limits.row_size:
            log.add(
                "dataset.row.too_large",
                "the row is longer than {limit}",
                limit=format_bytes(limits.row_size),
                row=row,
            )
        elif isinstance(value, dict):
            yield row, value
        else:
            log.add(_record_not_object_reason(value), row=row)
        place = _skip_blanks(text, end)
        if text[place : place + 1] == "]":
            break
        if text[place : place + 1] != ",":
            missing = json.JSONDecodeError("Expecting ',' or ']' after a row", text, place)
            log.stop(_describe_syntax_error(missing), row=row)
        place = _skip_blanks(text, place + 1)
    place = _skip_blanks(text, place + 1)
    if place < len(text):
        excess = json.JSONDecodeError("Expecting nothing after the array", text, place)
        log.stop(_describe_syntax_error(excess))


def _whole_text(source: OpenedFile, limits: FileLimits, log: FileProblemLog) -> str:
    lines: list[str] = []
    size = 0
    try:
        for _, line in source.lines:
            lines.append(line)
            size += len(line)
            if size > limits.array_size:
                most = format_bytes(limits.array_size)
                log.stop(
                    "dataset.file.array_too_large",
                    "a JSON array may have at most {limit}; use JSON Lines (.jsonl) instead",
                    limit=most,
                )
        return "".join(lines)
    except TextDecodingFailed as broken:
        log.stop(
            "dataset.file.line_broken",
            "line {line}: {reason}",
            line=f"{broken.line:,}",
            reason=str(broken),
        )


def _skip_blanks(text: str, place: int) -> int:
    while place < len(text) and text[place] in _BLANK:
        place += 1
    return place


class _CsvLines:
    """Lines for the CSV reader; bounds how much an open quote can consume."""

    def __init__(self, source: OpenedFile, limit: int) -> None:
        self._lines = source.lines
        self._limit = limit
        self._consumed = 0
        self.line = 1

    def begin_row(self) -> None:
        self._consumed = 0

    def __iter__(self) -> _CsvLines:
        return self

    def __next__(self) -> str:
        self.line, text = next(self._lines)
        self._consumed += len(text)
        if self._consumed > self._limit:
            raise TextDecodingFailed(
                self.line,
                "dataset.row.csv_record_too_long",
                "the record is longer than {limit}; check for an unclosed quotation mark",
                limit=format_bytes(self._limit),
            )
        return text


def _read_csv_records(
    source: OpenedFile, limits: FileLimits, log: FileProblemLog
) -> Iterator[Record]:
    feed = _CsvLines(source, limits.row_size)
    row = 1
    try:
        header_line = next(line for line in feed if line.strip(_BLANK))
        delimiter = max(_DELIMITERS, key=header_line.count)
        reader = csv.reader(_prepend_line(header_line, feed), delimiter=delimiter, strict=True)
        header = _check_csv_header(next(reader), log)
        for cells in reader:
            row += 1
            feed.begin_row()
            if len(cells) == len(header):
                yield row, dict(zip(header, cells, strict=True))
            elif cells:
                log.add(
                    "dataset.row.csv_field_count",
                    "the row has {fields} fields, but the header has {columns}; quote a "
                    "field that contains the separator",
                    fields=len(cells),
                    columns=len(header),
                    row=row,
                )
    except TextDecodingFailed as broken:
        log.stop(str(broken), row=row + 1 if broken.line > 1 else 1)
    except csv.Error as error:
        detail, line = str(error), f"{feed.line:,}"
        if detail.startswith("new-line character"):
            reason = Reason(
                "dataset.file.csv_bare_carriage_return",
                "line {line} is not valid CSV: a bare carriage return; save the file "
                "with LF or CRLF line endings",
                line=line,
            )
        else:
            reason = Reason(
                "dataset.file.invalid_csv",
                "line {line} is not valid CSV: {detail}",
                line=line,
                detail=detail,
            )
        log.stop(reason, row=row + 1)


def _prepend_line(line: str, feed: _CsvLines) -> Iterator[str]:
    yield line
    yield from feed


def _check_csv_header(cells: list[str], log: FileProblemLog) -> list[str]:
    names = [cell.strip() for cell in cells]
    if "" in names:
        log.stop(
            Reason(
                "dataset.file.unnamed_column",
                "column {column} of the header has no name",
                column=names.index("") + 1,
            ),
            row=1,
        )
    for name in names:
        if names.count(name) > 1:
            log.stop(
                "dataset.file.duplicate_column",
                "the header of the file has this column more than once",
                row=1,
                column=name,
            )
    return names
