"""Where a page of a list ends, as text for an address.

A cursor is signed: what comes back is a value that this product wrote, of a type that the column has, so
no address can make the database compare a date with a poem.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.core import signing

_SALT = "table"
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The last row of a page."""

    #: Of the column that the rows are ordered by.
    value: Any
    key: int


def write(position: Position, *, order: str) -> str:
    """The cursor behind that row, for rows in that order only.

    :raises TypeError: if the value's type has no place in a cursor.
    """
    return signing.dumps([order, *_packed(position.value), position.key], salt=_SALT)


def read(text: str, *, order: str) -> Position | None:
    """The position; None where there is none, it was changed, or it belongs to another order."""
    try:
        written_for, kind, value, key = signing.loads(text, salt=_SALT)
    except (signing.BadSignature, ValueError):
        return None
    return Position(value=_unpacked(kind, value), key=key) if written_for == order else None


def _packed(value: Any) -> tuple[str, Any]:
    if value is None or isinstance(value, bool | int | float | str):
        return "", value
    if isinstance(value, datetime):
        return "at", value.isoformat()
    if isinstance(value, date):
        return "day", value.isoformat()
    if isinstance(value, timedelta):
        return "span", value // _MICROSECOND
    if isinstance(value, Decimal):
        return "decimal", str(value)
    raise TypeError(f"rows cannot be paged by a {type(value).__name__}; sort by another field")


def _unpacked(kind: str, value: Any) -> Any:
    match kind:
        case "at":
            return datetime.fromisoformat(value)
        case "day":
            return date.fromisoformat(value)
        case "span":
            return value * _MICROSECOND
        case "decimal":
            return Decimal(value)
        case _:
            return value
