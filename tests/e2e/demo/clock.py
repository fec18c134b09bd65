"""Time travel for sample data: what happens inside of ``ago`` is dated then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from unittest import mock

from django.utils import timezone

NOW = timezone.now()


def before(**distance: float) -> datetime:
    """That long before the sample company was made; ``before(days=2, hours=3)``."""
    return NOW - timedelta(**distance)


@contextmanager
def ago(**distance: float) -> Iterator[datetime]:
    """Every row made inside is dated that long ago, the columns of ``auto_now_add`` included."""
    at = before(**distance)
    with mock.patch("django.utils.timezone.now", return_value=at):
        yield at
