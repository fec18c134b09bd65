"""Downloads: CSV without formula injection, and streamed files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import BinaryIO

from django.http import FileResponse, StreamingHttpResponse

#: A spreadsheet takes a cell that begins with one of these for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class _Echo:
    """A file object whose ``write`` returns its argument."""

    def write(self, line: str) -> str:
        return line


def csv_cell(value: object) -> object:
    """Return the value of a cell: numbers unchanged, instants in ISO 8601, formulas as text."""
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    text = str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def csv_lines(*, head: Sequence[str], lines: Iterable[Sequence[object]]) -> Iterator[str]:
    """One line of CSV after the other (RFC 4180)."""
    writer = csv.writer(_Echo())
    yield writer.writerow([csv_cell(name) for name in head])
    for line in lines:
        yield writer.writerow([csv_cell(value) for value in line])


def csv_download(
    *, filename: str, head: Sequence[str], lines: Iterable[Sequence[object]]
) -> StreamingHttpResponse:
    """Return a streamed CSV download under that name."""
    return StreamingHttpResponse(
        csv_lines(head=head, lines=lines),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{filename}"'},
    )


def file_download(stream: BinaryIO, *, size: int, filename: str) -> FileResponse:
    """Return the stream as a download, never displayed inline."""
    response = FileResponse(
        stream, as_attachment=True, filename=filename, content_type="application/octet-stream"
    )
    response["Content-Length"] = str(size)
    return response
