"""The history of rounds over the storage: each has an end, and what broke it off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.utils import timezone

from apps.models.models import StorageRun

CUT_OFF = "it was cut off; the next round went on where it was"


@contextmanager
def storage_run(
    kind: StorageRun.Kind, *, at: datetime, dry_run: bool = False, cursor: str = ""
) -> Iterator[StorageRun]:
    """The row of a round, kept with what the block has noted in it, whether it ends well or not.

    One of that kind that is still open died with its process: only one round is made at a time.
    """
    left_open = StorageRun.objects.filter(kind=kind, ended_at=None)
    left_open.update(ended_at=at, error=CUT_OFF)
    run = StorageRun.objects.create(kind=kind, started_at=at, dry_run=dry_run, cursor=cursor)
    try:
        yield run
    except Exception as error:
        run.error = f"it broke off: {error}"
        _end(run)
        raise
    _end(run)


def _end(run: StorageRun) -> None:
    run.ended_at = timezone.now()
    run.save()
