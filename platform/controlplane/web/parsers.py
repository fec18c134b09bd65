"""What REST reads: JSON and forms with files, each within a bound.

The bounds are checked against ``Content-Length`` before anything is read. A request without one has
no body under WSGI.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework import exceptions, status
from rest_framework.parsers import JSONParser, MultiPartParser

from controlplane.domain.resources import bytes_in_words

#: Boundaries, headers and the small fields beside a file.
_FORM_OVERHEAD = 1024 * 1024
#: Digits of a Content-Length.
_LONGEST_LENGTH = 18


class BodyTooLarge(exceptions.APIException):
    """The body is larger than this address takes."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "too-large"

    def __init__(self, *, size: int, limit: int) -> None:
        super().__init__(
            f"the body has {bytes_in_words(size)}; at most {bytes_in_words(limit)} are taken here"
        )


def content_length(headers: Mapping[str, str]) -> int | None:
    """Bytes of the body as announced; None where nothing is.

    :raises ParseError: if it is no number.
    """
    announced = headers.get("Content-Length") or ""
    if not announced:
        return None
    if not announced.isdecimal() or len(announced) > _LONGEST_LENGTH:
        message = f"Content-Length must be a whole number, got {announced[:40]!r}"
        raise exceptions.ParseError(message)
    return int(announced)


def require_bounded(parser_context: Mapping[str, Any] | None, *, limit: int) -> None:
    """:raises BodyTooLarge: if the request announces more than ``limit`` bytes."""
    request = (parser_context or {}).get("request")
    size = content_length(request.headers) if request is not None else None
    if size is not None and size > limit:
        raise BodyTooLarge(size=size, limit=limit)


class BoundedJSONParser(JSONParser):
    """JSON that the database can keep."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """:raises ParseError: if it is no JSON, or has a text or number that cannot be kept."""
        require_bounded(parser_context, limit=settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        try:
            value = super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise exceptions.ParseError("the JSON is nested too deeply") from None
        _check_values(value)
        return value


def _check_values(value: Any) -> None:
    """PostgreSQL stores neither NUL nor half of a surrogate pair, in a column or inside of JSON.

    Nor does JSON know infinity, which is what Python reads where an exponent is too large.
    """
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            if "\0" in each or any("\ud800" <= character <= "\udfff" for character in each):
                raise exceptions.ParseError(
                    "a text has a NUL (\\u0000) or half of a surrogate pair (\\ud800 to \\udfff)"
                )
        elif isinstance(each, float) and not math.isfinite(each):
            raise exceptions.ParseError("a number is too large to be kept (beyond 1.8e308)")
        elif isinstance(each, Mapping):
            waiting.extend(each)
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)


class BoundedMultiPartParser(MultiPartParser):
    """A form with one file of at most ``NINEFOLD_UPLOAD_LIMIT`` bytes."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        require_bounded(parser_context, limit=settings.NINEFOLD_UPLOAD_LIMIT + _FORM_OVERHEAD)
        return super().parse(stream, media_type, parser_context)
