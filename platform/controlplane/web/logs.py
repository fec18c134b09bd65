"""Log formatting: a fixed message followed by its fields, as text or as JSON.

Every line of a request has the request id, every line of a task its name and id. Secrets are redacted from
the finished line, wherever they occur in it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

from django.conf import settings
from pythonjsonlogger.json import JsonFormatter

REDACTED = "[hidden]"
#: Django and Celery put whole requests and arguments there, uvicorn its message in colours.
_BULKY = {"color_message", "data", "request"}
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"} | _BULKY
_SECRETS = re.compile(
    r"""(?P<before>\bbearer\s+)[^\s"',;]+               # tokens in headers
      | \bnf[a-z]?-[A-Za-z0-9_-]{16,}                   # our own tokens and keys
      | (?P<link>/password/set/[^/\s]+/|/sign-on/link/)[^/\s"',;]+   # addresses that are keys
      | (?P<scheme>\b[a-z][a-z0-9+.-]*://[^\s:/@]*:)[^\s/@]+(?=@)   # passwords in URLs
    """,
    re.VERBOSE | re.IGNORECASE,
)
#: A shorter value could be an everyday word.
_SHORTEST_SECRET = 8

_fields: ContextVar[dict[str, str]] = ContextVar("log_fields")


@contextmanager
def log_request_id(request_id: str) -> Iterator[None]:
    """Add the request id to log lines of this thread inside the block."""
    before = _fields.set({"request_id": request_id})
    try:
        yield
    finally:
        _fields.reset(before)


def set_task_context(*, name: str, task_id: str) -> None:
    """Add the name and id of the task to log lines from now on."""
    _fields.set({"task": name, "task_id": task_id})


def clear_task_context() -> None:
    _fields.set({})


def current_request_id() -> str:
    """Return the id of the current request; empty outside of one."""
    return _fields.get({}).get("request_id", "")


class LogContextFilter(logging.Filter):
    """Adds the context fields to each record; its own fields have precedence."""

    def filter(self, record: logging.LogRecord) -> bool:
        for name, value in _fields.get({}).items():
            if not hasattr(record, name):
                setattr(record, name, value)
        return True


def redact_line(line: str) -> str:
    """The line, with :data:`HIDDEN` in the place of tokens, passwords and this product's own secrets."""
    for value in (
        settings.SECRET_KEY,
        settings.NINEFOLD_GATEWAY_TOKEN,
        settings.NINEFOLD_METRICS_TOKEN,
        *settings.NINEFOLD_ENCRYPTION_KEYS,
    ):
        if len(value) >= _SHORTEST_SECRET and value in line:
            line = line.replace(value, REDACTED)
    return _SECRETS.sub(_redact_match, line)


def _redact_match(found: re.Match[str]) -> str:
    return f"{found['before'] or found['link'] or found['scheme'] or ''}{REDACTED}"


class WebTextFormatter(logging.Formatter):
    """``INFO apps.jobs a turn failed attempt=… state=…``, with ``extra`` as the fields."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        field_text = " ".join(f"{name}={value}" for name, value in sorted(fields.items()))
        line = f"{record.levelname} {record.name} {record.getMessage()}"
        if field_text:
            line = f"{line} {field_text}"
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return redact_line(line)


class WebJsonFormatter(JsonFormatter):
    """One JSON object a line: ``at``, ``level``, ``logger``, ``message``, and ``extra`` beside them."""

    def __init__(self) -> None:
        super().__init__(
            ["at", "levelname", "name", "message"],
            rename_fields={"levelname": "level", "name": "logger"},
            reserved_attrs=sorted(_STANDARD),
            json_ensure_ascii=False,
        )

    def format(self, record: logging.LogRecord) -> str:
        record.at = datetime.fromtimestamp(record.created, tz=UTC).isoformat(
            timespec="milliseconds"
        )
        return redact_line(super().format(record))
