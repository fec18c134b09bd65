"""Log lines: a fixed sentence, then its fields; as text for people, as JSON for programs.

Every line of a request bears the request's id, every line of a task the task's name and id. What is
secret is taken out of the finished line, wherever in it it stood.
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

HIDDEN = "[hidden]"
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
def in_request(request_id: str) -> Iterator[None]:
    """Lines of this thread bear the request's id inside the block."""
    before = _fields.set({"request_id": request_id})
    try:
        yield
    finally:
        _fields.reset(before)


def task_begins(*, name: str, task_id: str) -> None:
    """From now on lines of this process bear the task's name and id."""
    _fields.set({"task": name, "task_id": task_id})


def task_ends() -> None:
    _fields.set({})


def request_id() -> str:
    """Of the request that is being answered; empty outside of one."""
    return _fields.get({}).get("request_id", "")


class ContextFilter(logging.Filter):
    """Gives each record the fields of what is going on; fields that it brings itself win."""

    def filter(self, record: logging.LogRecord) -> bool:
        for name, value in _fields.get({}).items():
            if not hasattr(record, name):
                setattr(record, name, value)
        return True


def without_secrets(line: str) -> str:
    """The line, with :data:`HIDDEN` in the place of tokens, passwords and this product's own secrets."""
    for value in (
        settings.SECRET_KEY,
        settings.NINEFOLD_GATEWAY_TOKEN,
        settings.NINEFOLD_METRICS_TOKEN,
        *settings.NINEFOLD_ENCRYPTION_KEYS,
    ):
        if len(value) >= _SHORTEST_SECRET and value in line:
            line = line.replace(value, HIDDEN)
    return _SECRETS.sub(_hidden, line)


def _hidden(found: re.Match[str]) -> str:
    return f"{found['before'] or found['link'] or found['scheme'] or ''}{HIDDEN}"


class FieldsFormatter(logging.Formatter):
    """``INFO apps.jobs a turn failed attempt=… state=…``, with ``extra`` as the fields."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        words = " ".join(f"{name}={value}" for name, value in sorted(fields.items()))
        line = f"{record.levelname} {record.name} {record.getMessage()}"
        if words:
            line = f"{line} {words}"
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return without_secrets(line)


class JsonLinesFormatter(JsonFormatter):
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
        return without_secrets(super().format(record))
