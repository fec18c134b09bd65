"""Usage on disk until the control plane has it.

A batch is a file: the JSON that will be posted, named by its sequence number and its count of
records, written aside, synced and renamed, so that a file with its final name is whole. A batch is
posted under its number until it is acknowledged; the control plane counts a number once. Numbers
therefore must never be used twice, not even after everything has been acknowledged: the newest file
is kept as a mark when it is. In an empty folder numbers start from the clock in milliseconds, which
is above all that a lost folder can have held, since far fewer than a thousand batches are written a
second. Numbers may have gaps.

While the control plane is away the oldest batches are dropped once the journal exceeds its bound.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import Any

from gateway.files import write_durably

#: What callers put into one batch; about 1 MB.
LARGEST_BATCH_RECORDS = 4000

_NAME = re.compile(r"(\d{20})\.(\d+)\.(json|sent|refused)")


class _State(StrEnum):
    PENDING = "json"
    #: Acknowledged; kept for its number.
    SENT = "sent"
    #: The control plane will never take it; kept for a person to look at.
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Batch:
    sequence: int
    records: int
    size_bytes: int


class Journal:
    """The batches of one gateway. Methods may be called from several threads."""

    def __init__(
        self, folder: Path, *, gateway_id: str, max_bytes: int, wall: Callable[[], float]
    ) -> None:
        self._folder = folder
        self._gateway_id = gateway_id
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._pending: dict[int, Batch] = {}
        self._marks: list[Path] = []
        #: Records dropped so far because the journal was full.
        self.dropped_records = 0
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._last = self._find() or int(wall() * 1000)

    def _find(self) -> int:
        last = 0
        for path in sorted(self._folder.iterdir()):
            match = _NAME.fullmatch(path.name)
            if match is None:
                # What was being written when the process ended; it never had its final name.
                if path.suffix == ".partial":
                    path.unlink()
                continue
            sequence = int(match[1])
            last = max(last, sequence)
            if match[3] == _State.PENDING:
                self._pending[sequence] = Batch(
                    sequence=sequence, records=int(match[2]), size_bytes=path.stat().st_size
                )
            else:
                self._marks.append(path)
        return last

    def _path(self, batch: Batch, state: _State) -> Path:
        return self._folder / f"{batch.sequence:020d}.{batch.records}.{state.value}"

    def append(self, records: Sequence[dict[str, Any]]) -> None:
        """Write records as one batch; it is on the disk when this returns.

        :raises OSError: if the disk refuses; nothing is written then.
        """
        with self._lock:
            sequence = self._last + 1
            content = {"gateway": self._gateway_id, "sequence": sequence, "records": records}
            body = json.dumps(content, separators=(",", ":")).encode()
            batch = Batch(sequence=sequence, records=len(records), size_bytes=len(body))
            write_durably(self._path(batch, _State.PENDING), body)
            self._last = sequence
            self._pending[sequence] = batch
            self._forget_marks()
            self._make_room()

    def _forget_marks(self) -> None:
        # A newer number is on the disk now, so older marks have done their work.
        for path in [path for path in self._marks if path.suffix == f".{_State.SENT.value}"]:
            path.unlink(missing_ok=True)
            self._marks.remove(path)

    def _make_room(self) -> None:
        size = sum(batch.size_bytes for batch in self._pending.values())
        for sequence in sorted(self._pending):
            # The newest stays in any case: its number must survive.
            if size <= self._max_bytes or sequence == self._last:
                return
            batch = self._pending.pop(sequence)
            self._path(batch, _State.PENDING).unlink(missing_ok=True)
            self.dropped_records += batch.records
            size -= batch.size_bytes

    def oldest(self) -> tuple[Batch, bytes] | None:
        """The next batch to post with its body; None if everything is acknowledged."""
        with self._lock:
            while self._pending:
                batch = self._pending[min(self._pending)]
                try:
                    return batch, self._path(batch, _State.PENDING).read_bytes()
                except FileNotFoundError:
                    # Somebody cleared the folder; what is behind it must not wait for ever.
                    del self._pending[batch.sequence]
                    self.dropped_records += batch.records
            return None

    def acknowledge(self, batch: Batch) -> None:
        """The control plane has it."""
        with self._lock:
            if self._pending.pop(batch.sequence, None) is None:
                return
            path = self._path(batch, _State.PENDING)
            if batch.sequence == self._last:
                mark = self._path(batch, _State.SENT)
                path.rename(mark)
                # Nothing but the number is wanted of it.
                os.truncate(mark, 0)
                self._marks.append(mark)
            else:
                path.unlink(missing_ok=True)

    def refuse(self, batch: Batch) -> Path | None:
        """The control plane will never take it. The file that keeps it; None if it is gone."""
        with self._lock:
            if self._pending.pop(batch.sequence, None) is None:
                return None
            kept = self._path(batch, _State.REFUSED)
            self._path(batch, _State.PENDING).rename(kept)
            self._marks.append(kept)
            return kept

    @property
    def pending_records(self) -> int:
        return sum(batch.records for batch in tuple(self._pending.values()))

    @property
    def pending_bytes(self) -> int:
        return sum(batch.size_bytes for batch in tuple(self._pending.values()))
