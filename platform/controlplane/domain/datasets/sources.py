"""From bytes to numbered lines of text: the size, the kind of file and the encoding.

Text is UTF-8, with or without a byte order mark. UTF-16 and UTF-32 are decoded where a byte order
mark announces them. Anything else is refused with the line and the byte: a guess that is wrong
once would spoil a dataset silently.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import PurePath
from typing import BinaryIO

from controlplane.domain.common.resources import KIB, format_bytes
from controlplane.domain.datasets.refusals import Limits, ProblemLog

_PIECE = 256 * KIB
_HEAD = 4 * KIB

#: First bytes of files that people rename or pick by mistake.
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

ACCEPTED = "JSON Lines (.jsonl), a JSON array (.json) or CSV (.csv), as UTF-8 text"


class Format(StrEnum):
    JSONL = "jsonl"
    JSON = "json"
    CSV = "csv"


class TextBroken(Exception):
    """The bytes cannot be read as text from here on."""

    def __init__(self, message: str, *, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An opened file."""

    format: Format
    #: (line number from 1, text with its line feed). Raises :class:`TextBroken`.
    lines: Iterator[tuple[int, str]]


def open_source(
    stream: BinaryIO | Iterable[bytes], *, filename: str, limits: Limits, log: ProblemLog
) -> Source:
    """What the file is, and its text.

    :raises DatasetRefused: if it is empty, too large, or not text.
    """
    head, pieces = _peeked(_bounded(_pieces(stream), limits=limits, log=log))
    _refuse_other_kinds(head, log)
    mark, encoding = next(
        (found for found in _BYTE_ORDER_MARKS if head.startswith(found[0])), (b"", "utf-8")
    )
    pieces = _without_prefix(pieces, mark)
    if encoding != "utf-8":
        pieces = _transcoded(pieces, encoding, start=len(mark))
    elif head.count(0) * 4 > len(head):
        log.stop(
            "looks like UTF-16 without a byte order mark (many bytes are zero); save it as UTF-8"
        )
    try:
        start, pieces = _peeked(pieces)
    except TextBroken as broken:
        log.stop(str(broken), row=broken.line)
    if not start.strip():
        log.stop("the file is empty: nothing but blank space at its start")
    kind = _format(start.lstrip(), filename, log)
    longest = limits.array_size if kind is Format.JSON else limits.row_size
    return Source(format=kind, lines=_lines(pieces, longest=longest, start=len(mark)))


def _pieces(stream: BinaryIO | Iterable[bytes]) -> Iterator[bytes]:
    read = getattr(stream, "read", None)
    if read is None:
        yield from stream
        return
    while piece := read(_PIECE):
        yield piece


def _bounded(pieces: Iterable[bytes], *, limits: Limits, log: ProblemLog) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > limits.size:
            log.stop(f"the file is larger than {format_bytes(limits.size)}; split it up")
        yield piece


def _peeked(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes, and all pieces including them."""
    seen: list[bytes] = []
    size = 0
    while size < _HEAD and (piece := next(pieces, None)) is not None:
        seen.append(piece)
        size += len(piece)
    return b"".join(seen)[:_HEAD], chain(seen, pieces)


def _without_prefix(pieces: Iterable[bytes], prefix: bytes) -> Iterator[bytes]:
    left = len(prefix)
    for piece in pieces:
        yield piece[left:]
        left = max(left - len(piece), 0)


def _refuse_other_kinds(head: bytes, log: ProblemLog) -> None:
    if not head:
        log.stop("the file is empty (0 bytes)")
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            log.stop(f"the file is {kind} whatever its name says; expected {ACCEPTED}")
    place, magic = _TAR_MAGIC
    if head[place:].startswith(magic):
        log.stop(f"the file is a tar archive whatever its name says; expected {ACCEPTED}")


def _format(start: bytes, filename: str, log: ProblemLog) -> Format:
    """By the name where it says something, by the first character where it does not."""
    suffix = PurePath(filename).suffix.lower()
    by_content = {b"{": Format.JSONL, b"[": Format.JSON}.get(start[:1], Format.CSV)
    if suffix in (".jsonl", ".ndjson", ".json"):
        return Format.JSON if by_content is Format.JSON else Format.JSONL
    if suffix in (".csv", ".tsv") and by_content is not Format.CSV:
        name = {Format.JSONL: "JSON Lines (.jsonl)", Format.JSON: "a JSON array (.json)"}[
            by_content
        ]
        log.stop(f"the file is named {suffix} and its content looks like {name}; rename it")
    return by_content


def _transcoded(pieces: Iterable[bytes], encoding: str, *, start: int) -> Iterator[bytes]:
    """The same text as UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)()
    line, offset = 1, start
    for piece, final in chain(((piece, False) for piece in pieces), ((b"", True),)):
        try:
            text = decoder.decode(piece, final)
        except UnicodeDecodeError as error:
            at = offset + len(piece) - len(error.object) + error.start
            line += error.object[: error.start].decode(encoding, "ignore").count("\n")
            message = f"byte {at:,} of the file is not {encoding.upper()}: {error.reason}"
            raise TextBroken(message, line=line) from None
        offset += len(piece)
        line += text.count("\n")
        if text:
            yield text.encode()


def _lines(pieces: Iterable[bytes], *, longest: int, start: int) -> Iterator[tuple[int, str]]:
    number, offset = 1, start
    pending: list[bytes] = []
    size = 0
    for piece in pieces:
        pending.append(piece)
        size += len(piece)
        if b"\n" in piece:
            parts = b"".join(pending).split(b"\n")
            pending = [parts.pop()]
            size = len(pending[0])
            for part in parts:
                yield number, _text(part, number=number, offset=offset, longest=longest) + "\n"
                number += 1
                offset += len(part) + 1
        if size > longest:
            break
    if size:
        yield number, _text(b"".join(pending), number=number, offset=offset, longest=longest)


def _text(line: bytes, *, number: int, offset: int, longest: int) -> str:
    if len(line) > longest:
        raise TextBroken(f"the line is longer than {format_bytes(longest)}", line=number)
    if 0 in line:
        at = offset + line.index(0)
        raise TextBroken(f"byte {at:,} of the file is NUL, which text never has", line=number)
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        at = offset + error.start
        guess = "; it looks like GB18030 (GBK): save the file as UTF-8" if _is_gb18030(line) else ""
        value = line[error.start]
        message = f"byte {at:,} of the file (0x{value:02x}) is not UTF-8: {error.reason}{guess}"
        raise TextBroken(message, line=number) from None


def _is_gb18030(line: bytes) -> bool:
    """Whether the line decodes to something that is mostly Chinese where it is not ASCII."""
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
