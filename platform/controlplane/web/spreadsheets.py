"""CSV that programs read and that spreadsheets do not run."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from django.http import StreamingHttpResponse

#: A spreadsheet takes a cell that begins with one of these for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class _Echo:
    """A file that gives back what is written to it."""

    def write(self, line: str) -> str:
        return line


def cell(value: object) -> object:
    """The value as it stands in a cell: numbers as they are, instants in ISO 8601, formulas as text."""
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    text = str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def written(*, head: Sequence[str], lines: Iterable[Sequence[object]]) -> Iterator[str]:
    """One line of CSV after the other (RFC 4180)."""
    writer = csv.writer(_Echo())
    yield writer.writerow([cell(name) for name in head])
    for line in lines:
        yield writer.writerow([cell(value) for value in line])


def download(
    *, filename: str, head: Sequence[str], lines: Iterable[Sequence[object]]
) -> StreamingHttpResponse:
    """Lines sent as they are made, under that name."""
    return StreamingHttpResponse(
        written(head=head, lines=lines),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{filename}"'},
    )
