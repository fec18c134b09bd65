"""Deprecated operations of REST: the headers ``Deprecation`` (RFC 9745) and ``Sunset`` (RFC 8594).

::

    @deprecated(since=date(2027, 1, 15), sunset=date(2027, 7, 15), successor="/api/v1/jobs")
    @extend_schema(...)
    def list(self, request: Request) -> Response: ...

The operation is ``deprecated`` in the OpenAPI document, and ``CHANGELOG.md`` names it under *Deprecated*.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from django.http import HttpResponseBase
from django.utils.http import http_date
from drf_spectacular.utils import extend_schema

P = ParamSpec("P")
R = TypeVar("R", bound=HttpResponseBase)

#: What clients have to change what they call.
NOTICE = timedelta(days=90)
#: Where the convention is explained to clients.
_DOCUMENTATION = "/api/v1/docs"


def deprecated(
    *, since: date, sunset: date, successor: str = ""
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a method of a view as deprecated, outside all other decorators.

    :param since: first day of the deprecation, UTC.
    :param sunset: first day on which it may no longer exist, UTC.
    :param successor: path of the operation to use instead.
    :raises ValueError: if there is less than ``NOTICE`` between the two.
    """
    if sunset - since < NOTICE:
        raise ValueError(
            f"sunset is {sunset}; it must be {NOTICE.days} days or more after since, {since}"
        )
    links = [f'<{_DOCUMENTATION}>; rel="deprecation"']
    if successor:
        links.append(f'<{successor}>; rel="successor-version"')
    headers = {
        "Deprecation": f"@{_timestamp(since)}",
        "Sunset": http_date(_timestamp(sunset)),
        "Link": ", ".join(links),
    }

    def mark(operation: Callable[P, R]) -> Callable[P, R]:
        @wraps(operation)
        def marked(*arguments: P.args, **options: P.kwargs) -> R:
            response = operation(*arguments, **options)
            for name, value in headers.items():
                response.headers[name] = value
            return response

        described: Any = extend_schema(deprecated=True)(marked)
        result: Callable[P, R] = described
        return result

    return mark


def _timestamp(day: date) -> int:
    return int(datetime.combine(day, time(), tzinfo=UTC).timestamp())
