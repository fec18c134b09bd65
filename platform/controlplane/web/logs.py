"""Log lines: a fixed sentence, then its fields."""

from __future__ import annotations

import logging

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


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
        return line
