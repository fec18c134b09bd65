"""How the gateway's lines look: as text for people, as JSON for programs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime

from pythonjsonlogger.json import JsonFormatter

_OWN_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    # Uvicorn's own line once more, with colours.
    "color_message",
}


class FieldsFormatter(logging.Formatter):
    """A line of level, logger and sentence, followed by the fields that were given as ``extra``."""

    def format(self, record: logging.LogRecord) -> str:
        fields = " ".join(
            f"{name}={value}" for name, value in vars(record).items() if name not in _OWN_FIELDS
        )
        return f"{super().format(record)} {fields}".rstrip()


class JsonLinesFormatter(JsonFormatter):
    """One object a line, with the names that the control plane's lines have."""

    def __init__(self) -> None:
        super().__init__(
            ["at", "levelname", "name", "message"],
            rename_fields={"levelname": "level", "name": "logger"},
            reserved_attrs=sorted(_OWN_FIELDS),
            json_ensure_ascii=False,
        )

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, tz=UTC)
        record.at = at.isoformat(timespec="milliseconds")
        return super().format(record)


def configure(environ: Mapping[str, str]) -> None:
    """Write to standard error, in the form that ``NINEFOLD_LOG_FORMAT`` names: ``text`` or ``json``."""
    formatter: logging.Formatter = FieldsFormatter("%(levelname)s %(name)s: %(message)s")
    if environ.get("NINEFOLD_LOG_FORMAT") == "json":
        formatter = JsonLinesFormatter()
    handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    logging.basicConfig(level=logging.INFO, handlers=[handler])
