"""Answers that are read from a stream rather than made in memory."""

from __future__ import annotations

from typing import BinaryIO

from django.http import FileResponse


def download(stream: BinaryIO, *, size: int, filename: str) -> FileResponse:
    """The stream as a file to save. It is never shown in the browser, whatever its content says."""
    response = FileResponse(
        stream, as_attachment=True, filename=filename, content_type="application/octet-stream"
    )
    response["Content-Length"] = str(size)
    return response
