"""Bodies of the type ``multipart/form-data``: read into parts and written for the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import uuid4

import aiohttp
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_exceptions import HttpProcessingError

from gateway.errors import bad_request

#: Official clients send at most a dozen.
MAX_PARTS = 64
#: What the reader raises for a form that is not well-formed.
_SYNTAX_ERRORS = (ValueError, AssertionError, LookupError, RuntimeError, HttpProcessingError)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPart:
    """A field, or a file if it has a file name."""

    name: str
    filename: str
    content_type: str
    content: bytes

    def text(self) -> str:
        """The value of a field.

        :raises ApiError: 400 if it is not UTF-8.
        """
        try:
            return self.content.decode()
        except UnicodeDecodeError:
            raise bad_request(
                "gateway.form.field_not_utf8",
                "The field {field} of the form is not UTF-8.",
                field=repr(self.name),
                code="invalid_form",
            ) from None


async def parse_form(body: bytes, *, content_type: str) -> tuple[FormPart, ...]:
    """The parts of a form, in their order.

    :raises ApiError: 400 if the body is no form, ends early or has more than :data:`MAX_PARTS` parts.
    """
    # It never asks for a pause, as the whole body is there.
    stream = aiohttp.StreamReader(BaseProtocol(asyncio.get_running_loop()), len(body) + 1)
    stream.feed_data(body)
    stream.feed_eof()
    try:
        return await _read_parts(aiohttp.MultipartReader({"Content-Type": content_type}, stream))
    except _SYNTAX_ERRORS as error:
        raise bad_request(
            "gateway.form.syntax_error",
            "The body is not a valid multipart/form-data form: {error}.",
            error=str(error)[:200],
            code="invalid_form",
        ) from None


async def _read_parts(reader: aiohttp.MultipartReader) -> tuple[FormPart, ...]:
    parts: list[FormPart] = []
    while (part := await reader.next()) is not None:
        if not isinstance(part, aiohttp.BodyPartReader) or not part.name:
            raise ValueError("a part has no name")
        if len(parts) == MAX_PARTS:
            raise ValueError(f"more than {MAX_PARTS} parts")
        # A compressed part could be a thousand times as large as the body.
        if part.headers.keys() & {"Content-Encoding", "Content-Transfer-Encoding"}:
            raise ValueError(f"the part {part.name!r} is encoded")
        content = bytes(await part.read())
        if not part.at_eof():
            raise ValueError(f"the part {part.name!r} ends early")
        parts.append(
            FormPart(
                name=part.name,
                filename=part.filename or "",
                content_type=part.headers.get("Content-Type", ""),
                content=content,
            )
        )
    return tuple(parts)


def encode_form(parts: Iterable[FormPart], *, model: str) -> tuple[bytes, str]:
    """The body and its content type, with ``model`` as the field of that name.

    File names and types come from a parsed form; quotes and line ends in them are escaped as browsers do.
    """
    boundary = uuid4().hex
    lines: list[bytes] = []
    for part in parts:
        content = model.encode() if part.name == "model" and not part.filename else part.content
        disposition = f'form-data; name="{_escape(part.name)}"'
        if part.filename:
            disposition += f'; filename="{_escape(part.filename)}"'
        headers = f"--{boundary}\r\nContent-Disposition: {disposition}\r\n"
        if part.content_type:
            headers += f"Content-Type: {_escape(part.content_type)}\r\n"
        lines += [headers.encode(), b"\r\n", content, b"\r\n"]
    lines.append(f"--{boundary}--\r\n".encode())
    return b"".join(lines), f"multipart/form-data; boundary={boundary}"


def _escape(text: str) -> str:
    return text.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")
