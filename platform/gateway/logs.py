"""Log formats of the gateway: text and JSON lines."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime

from pythonjsonlogger.json import JsonFormatter

_OWN_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    # Uvicorn's message again, with colours.
    "color_message",
}


class GatewayTextFormatter(logging.Formatter):
    """A line with level, logger and message, followed by the fields in ``extra``."""

    def format(self, record: logging.LogRecord) -> str:
        fields = " ".join(
            f"{name}={value}" for name, value in vars(record).items() if name not in _OWN_FIELDS
        )
        return f"{super().format(record)} {fields}".rstrip()


class GatewayJsonFormatter(JsonFormatter):
    """A JSON object per line, with the field names of the control plane's log."""

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


def configure_logging(environ: Mapping[str, str]) -> None:
    """Log to standard error in the format ``NINEFOLD_LOG_FORMAT``: ``text`` or ``json``."""
    formatter: logging.Formatter = GatewayTextFormatter("%(levelname)s %(name)s: %(message)s")
    if environ.get("NINEFOLD_LOG_FORMAT") == "json":
        formatter = GatewayJsonFormatter()
    handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    logging.basicConfig(level=logging.INFO, handlers=[handler])
