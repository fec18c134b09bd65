"""Queues as the scheduler sees them, as if nobody held anything, read straight from their rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import NamedTuple

from apps.quotas.models import Entitlement as Entitlements
from apps.quotas.models import Queue
from apps.quotas.selectors.shelves import Shelf, marks_now
from controlplane.domain.queues import QueueState
from controlplane.domain.quotas import TOTAL, Entitlement
from controlplane.domain.scheduling.snapshots import QueueView

_PARENT = "parent__uid"


class _Row(NamedTuple):
    """The columns of one queue."""

    uid: str
    name: str
    state: str
    weight: float
    borrows: bool
    lends: bool
    reclaims: bool
    preempts: bool
    running_per_person: int | None
    retired_at: datetime | None
    #: Uid of the queue above.
    parent: str | None


_COLUMNS = (*_Row._fields[:-1], _PARENT)

#: A queue's uid never changes, so what is above it is told by its own row.
_MARKS = """
    SELECT string_agg(queue.id || queue.ctid::text || queue.xmin::text || coalesce(stated.versions, ''),
                      ' ' ORDER BY queue.id)
      FROM quotas_queue AS queue
      LEFT JOIN (SELECT queue_id, string_agg(ctid::text || xmin::text, '' ORDER BY id) AS versions
                   FROM quotas_entitlement GROUP BY queue_id) AS stated ON stated.queue_id = queue.id
"""


class StatedQueue(NamedTuple):
    """A queue as if nobody held anything."""

    view: QueueView
    retired: bool


def stated_queues(*, server: object) -> Mapping[str, StatedQueue]:
    """Every queue by uid, retired ones included, in the order in which they were made.

    :param server: as ``shelves.server_started`` says.
    """
    found = _SHELF.values(marks_now(_MARKS), server=server)
    return {stated.view.uid: stated for stated in found}


def queue_view(queue: Queue, used: Mapping[str, int]) -> QueueView:
    """The queue as the scheduler sees it, with what its own claims hold."""
    stated = {
        one.chip: Entitlement(reserved=one.reserved, guaranteed=one.guaranteed, cap=one.cap)
        for one in queue.entitlements.all()
    }
    parent = queue.parent.uid if queue.parent else None
    own = [getattr(queue, name) for name in _COLUMNS if name != _PARENT]
    return _view(_Row._make([*own, parent]), stated, used)


def _read(keys: Collection[int]) -> Mapping[int, StatedQueue]:
    rows = Queue.objects.filter(pk__in=keys).values_list("pk", *_COLUMNS)
    found = {pk: _Row._make(columns) for pk, *columns in rows}
    stated: dict[int, dict[str, Entitlement]] = defaultdict(dict)
    every = Entitlements.objects.filter(queue__in=keys).order_by()
    for queue, chip, reserved, guaranteed, cap in every.values_list(
        "queue_id", "chip", "reserved", "guaranteed", "cap"
    ):
        stated[queue][chip] = Entitlement(reserved=reserved, guaranteed=guaranteed, cap=cap)
    return {
        pk: StatedQueue(_view(row, stated[pk], {}), row.retired_at is not None)
        for pk, row in found.items()
    }


_SHELF: Shelf[StatedQueue] = Shelf(_read)


def _view(row: _Row, stated: Mapping[str, Entitlement], used: Mapping[str, int]) -> QueueView:
    return QueueView(
        uid=row.uid,
        name=row.name,
        parent=row.parent,
        total=stated.get(TOTAL, Entitlement()),
        entitlements={chip: one for chip, one in stated.items() if chip != TOTAL},
        weight=row.weight,
        used=used,
        open=row.state != QueueState.CLOSED and row.retired_at is None,
        borrows=row.borrows,
        lends=row.lends,
        reclaims=row.reclaims,
        preempts=row.preempts,
        running_per_person=row.running_per_person,
    )
