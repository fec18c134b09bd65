"""From text to numbered records: JSON Lines, a JSON array, CSV.

A broken row of JSON Lines, or a CSV row with too few fields, is noted and reading goes on. What
makes the rest unreadable (broken JSON inside an array, an open quote) ends it.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import Any

from controlplane.domain.common.resources import format_bytes
from controlplane.domain.datasets.refusals import Limits, ProblemLog
from controlplane.domain.datasets.sources import Format, Source, TextBroken

#: Row number and fields. A value is whatever JSON can hold; in a CSV file always text.
Record = tuple[int, dict[str, Any]]

_DELIMITERS = (",", "\t", ";")
_DECODER = json.JSONDecoder()
_BLANK = " \t\r\n"


def records(source: Source, *, limits: Limits, log: ProblemLog) -> Iterator[Record]:
    """Every record of the file.

    :raises DatasetRefused: if the rest cannot be read, or there are too many rows.
    """
    if source.format is Format.JSONL:
        found = _json_lines(source, log)
    elif source.format is Format.JSON:
        found = _json_array(source, limits, log)
    else:
        found = _csv(source, limits, log)
    for count, record in enumerate(found, 1):
        if count > limits.rows:
            log.stop(f"the file has more than {limits.rows:,} rows; split it up", row=record[0])
        yield record


def parse_json(text: str) -> Any:
    """The value.

    :raises ValueError: if it is no JSON; the message says where and what was expected.
    """
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(_syntax_in_words(error)) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(_excess_in_words(error)) from None


def kind_in_words(value: object) -> str:
    """What a JSON value is: ``a number``, ``an array``."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    names = {str: "text", int: "a number", float: "a number", list: "an array", dict: "an object"}
    return names[type(value)]


def _syntax_in_words(error: json.JSONDecodeError) -> str:
    expected = error.msg.replace("Expecting", "expected", 1)
    place = (
        f"line {error.lineno:,}, column {error.colno:,}"
        if error.lineno > 1
        else f"column {error.colno:,}"
    )
    return f"is not valid JSON at {place}: {expected[0].lower()}{expected[1:]}"


def _excess_in_words(error: Exception) -> str:
    reason = (
        "is nested too deeply"
        if isinstance(error, RecursionError)
        else "has a number that is too long"
    )
    return f"is not JSON that can be read: it {reason}"


def _json_lines(source: Source, log: ProblemLog) -> Iterator[Record]:
    try:
        for row, line in source.lines:
            if line.isspace():
                continue
            try:
                value = parse_json(line)
            except ValueError as error:
                log.add(f"{error} (each line must be one JSON object)", row=row)
                continue
            if isinstance(value, dict):
                yield row, value
            else:
                log.add(f"must be a JSON object, not {kind_in_words(value)}", row=row)
    except TextBroken as broken:
        log.stop(str(broken), row=broken.line)


def _json_array(source: Source, limits: Limits, log: ProblemLog) -> Iterator[Record]:
    text = _whole_text(source, limits, log)
    place = _after_blanks(text, _after_blanks(text, 0) + 1)
    row = 0
    while text[place : place + 1] != "]" or row:
        row += 1
        try:
            value, end = _DECODER.raw_decode(text, place)
        except json.JSONDecodeError as error:
            log.stop(_syntax_in_words(error), row=row)
        except (ValueError, RecursionError) as error:
            log.stop(_excess_in_words(error), row=row)
        if end - place > limits.row_size:
            log.add(f"is longer than {format_bytes(limits.row_size)}", row=row)
        elif isinstance(value, dict):
            yield row, value
        else:
            log.add(f"must be a JSON object, not {kind_in_words(value)}", row=row)
        place = _after_blanks(text, end)
        if text[place : place + 1] == "]":
            break
        if text[place : place + 1] != ",":
            missing = json.JSONDecodeError("Expecting ',' or ']' after a row", text, place)
            log.stop(_syntax_in_words(missing), row=row)
        place = _after_blanks(text, place + 1)
    place = _after_blanks(text, place + 1)
    if place < len(text):
        excess = json.JSONDecodeError("Expecting nothing after the array", text, place)
        log.stop(_syntax_in_words(excess))


def _whole_text(source: Source, limits: Limits, log: ProblemLog) -> str:
    lines: list[str] = []
    size = 0
    try:
        for _, line in source.lines:
            lines.append(line)
            size += len(line)
            if size > limits.array_size:
                most = format_bytes(limits.array_size)
                log.stop(f"a JSON array may have {most} at most; use JSON Lines (.jsonl) instead")
        return "".join(lines)
    except TextBroken as broken:
        log.stop(f"line {broken.line:,}: {broken}")


def _after_blanks(text: str, place: int) -> int:
    while place < len(text) and text[place] in _BLANK:
        place += 1
    return place


class _Feed:
    """Lines for the CSV reader, which must not swallow the file behind an open quote."""

    def __init__(self, source: Source, limit: int) -> None:
        self._lines = source.lines
        self._limit = limit
        self._taken = 0
        self.line = 1

    def begin_row(self) -> None:
        self._taken = 0

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        self.line, text = next(self._lines)
        self._taken += len(text)
        if self._taken > self._limit:
            message = f"is longer than {format_bytes(self._limit)}: is a quote left open?"
            raise TextBroken(message, line=self.line)
        return text


def _csv(source: Source, limits: Limits, log: ProblemLog) -> Iterator[Record]:
    feed = _Feed(source, limits.row_size)
    row = 1
    try:
        header_line = next(line for line in feed if line.strip(_BLANK))
        delimiter = max(_DELIMITERS, key=header_line.count)
        reader = csv.reader(_with_first(header_line, feed), delimiter=delimiter, strict=True)
        header = _header(next(reader), log)
        for cells in reader:
            row += 1
            feed.begin_row()
            if len(cells) == len(header):
                yield row, dict(zip(header, cells, strict=True))
            elif cells:
                message = f"has {len(cells)} fields, and the header has {len(header)}"
                log.add(f"{message}; quote a field that has the separator in it", row=row)
    except TextBroken as broken:
        log.stop(str(broken), row=row + 1 if broken.line > 1 else 1)
    except csv.Error as error:
        reason = str(error)
        if reason.startswith("new-line character"):
            reason = "a bare carriage return; save it with LF or CRLF at the end of lines"
        log.stop(f"is not valid CSV in line {feed.line:,}: {reason}", row=row + 1)


def _with_first(line: str, feed: _Feed) -> Iterator[str]:
    yield line
    yield from feed


def _header(cells: list[str], log: ProblemLog) -> list[str]:
    names = [cell.strip() for cell in cells]
    if "" in names:
        log.stop(f"column {names.index('') + 1} of the header has no name", row=1)
    for name in names:
        if names.count(name) > 1:
            log.stop("the header has this column more than once", row=1, column=name)
    return names
