"""Usage: records in memory, written to a journal twice a second, posted from there to the control plane.

``kill -9`` loses the records since the last write, which is less than a second.

A batch of the journal is a file: the JSON that will be posted, named by its sequence number and its number of
records, written to a temporary file, synced and renamed, so that a file with its final name is complete. A
batch is posted under its number until it is acknowledged; the control plane counts each number once. Numbers
therefore must never be used twice, not even after everything has been acknowledged: the newest file
is then kept as a marker. In an empty folder numbers start from the clock in milliseconds, which
is above all numbers of a lost folder, since far fewer than a thousand batches are written a
second. Numbers may have gaps.

While the control plane is unreachable the oldest batches are dropped once the journal exceeds its maximum size.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import Any

import aiohttp

from gateway.durable_files import write_durably
from gateway.metrics import GatewayMetrics
from gateway.operations import RouteOperation

#: Records of one batch at most; about 1 MB.
MAX_BATCH_RECORDS = 4000

_NAME = re.compile(r"(\d{20})\.(\d+)\.(json|sent|refused)")


class _BatchState(StrEnum):
    PENDING = "json"
    #: Acknowledged; stored for its number.
    SENT = "sent"
    #: Refused by the control plane for good; stored for an operator to inspect.
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class UsageJournalBatch:
    sequence: int
    records: int
    size_bytes: int


class UsageJournal:
    """The batches of one gateway. Methods may be called from several threads."""

    def __init__(
        self, folder: Path, *, gateway_id: str, max_bytes: int, wall: Callable[[], float]
    ) -> None:
        self._folder = folder
        self._gateway_id = gateway_id
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._pending: dict[int, UsageJournalBatch] = {}
        self._markers: list[Path] = []
        #: Records dropped so far because the journal was full.
        self.dropped_records = 0
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._last = self._scan_folder() or int(wall() * 1000)

    def _scan_folder(self) -> int:
        last = 0
        for path in sorted(self._folder.iterdir()):
            match = _NAME.fullmatch(path.name)
            if match is None:
                # An incomplete write of a process that ended.
                if path.suffix == ".partial":
                    path.unlink()
                continue
            sequence = int(match[1])
            last = max(last, sequence)
            if match[3] == _BatchState.PENDING:
                self._pending[sequence] = UsageJournalBatch(
                    sequence=sequence, records=int(match[2]), size_bytes=path.stat().st_size
                )
            else:
                self._markers.append(path)
        return last

    def _batch_path(self, batch: UsageJournalBatch, state: _BatchState) -> Path:
        return self._folder / f"{batch.sequence:020d}.{batch.records}.{state.value}"

    def append(self, records: Sequence[dict[str, Any]]) -> None:
        """Write records as one batch; it is on the disk when this returns.

        :raises OSError: if the disk refuses; nothing is written then.
        """
        with self._lock:
            sequence = self._last + 1
            content = {"gateway": self._gateway_id, "sequence": sequence, "records": records}
            body = json.dumps(content, separators=(",", ":")).encode()
            batch = UsageJournalBatch(sequence=sequence, records=len(records), size_bytes=len(body))
            write_durably(self._batch_path(batch, _BatchState.PENDING), body)
            self._last = sequence
            self._pending[sequence] = batch
            self._delete_markers()
            self._drop_oldest()

    def _delete_markers(self) -> None:
        # A newer number is on the disk now, so older markers are not needed.
        for path in [path for path in self._markers if path.suffix == f".{_BatchState.SENT.value}"]:
            path.unlink(missing_ok=True)
            self._markers.remove(path)

    def _drop_oldest(self) -> None:
        size = sum(batch.size_bytes for batch in self._pending.values())
        for sequence in sorted(self._pending):
            # The newest is never dropped: its number must survive.
            if size <= self._max_bytes or sequence == self._last:
                return
            batch = self._pending.pop(sequence)
            self._batch_path(batch, _BatchState.PENDING).unlink(missing_ok=True)
            self.dropped_records += batch.records
            size -= batch.size_bytes

    def oldest(self) -> tuple[UsageJournalBatch, bytes] | None:
        """The next batch to post with its body; None if everything is acknowledged."""
        with self._lock:
            while self._pending:
                batch = self._pending[min(self._pending)]
                try:
                    return batch, self._batch_path(batch, _BatchState.PENDING).read_bytes()
                except FileNotFoundError:
                    # The file was deleted; later batches must not wait for it.
                    del self._pending[batch.sequence]
                    self.dropped_records += batch.records
            return None

    def acknowledge(self, batch: UsageJournalBatch) -> None:
        """Remove an acknowledged batch; the newest one stays as a marker."""
        with self._lock:
            if self._pending.pop(batch.sequence, None) is None:
                return
            path = self._batch_path(batch, _BatchState.PENDING)
            if batch.sequence == self._last:
                marker = self._batch_path(batch, _BatchState.SENT)
                path.rename(marker)
                # Only its number is needed.
                os.truncate(marker, 0)
                self._markers.append(marker)
            else:
                path.unlink(missing_ok=True)

    def refuse(self, batch: UsageJournalBatch) -> Path | None:
        """Store a batch that was refused for good; return its file, or None if it is gone."""
        with self._lock:
            if self._pending.pop(batch.sequence, None) is None:
                return None
            path = self._batch_path(batch, _BatchState.REFUSED)
            self._batch_path(batch, _BatchState.PENDING).rename(path)
            self._markers.append(path)
            return path

    @property
    def pending_records(self) -> int:
        return sum(batch.records for batch in tuple(self._pending.values()))

    @property
    def pending_bytes(self) -> int:
        return sum(batch.size_bytes for batch in tuple(self._pending.values()))


logger = logging.getLogger(__name__)

_WRITE_SECONDS = 0.5
_MIN_BACKOFF_SECONDS = 0.5
_MAX_BACKOFF_SECONDS = 10.0
_POST_TIMEOUT = aiohttp.ClientTimeout(total=30.0)

#: Records kept in memory while the disk refuses them.
_MAX_UNWRITTEN = 200_000
#: Rejected requests recorded between two writes. They carry no tokens, and a client that ignores
#: its limits could otherwise push served requests out of a full journal.
MAX_REJECTED_PER_WRITE = 500

#: Statuses with which the control plane refuses a batch for good.
_FINAL_REFUSALS = frozenset({400, 413, 415, 422})


class RequestOutcome(StrEnum):
    OK = "ok"
    #: The engine, or the way to it, failed; or the engine refused the request.
    ERROR = "error"
    #: The client disconnected before the end.
    ABORTED = "aborted"
    #: The gateway refused it: a limit, or no endpoint ready.
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestUsage:
    """The usage of one request to a route that has ended."""

    #: When it ended, in seconds since 1970.
    at: float
    key: str
    route: str
    #: None if no backend was reached.
    backend: str | None
    operation: RouteOperation
    status: int
    prompt_tokens: int
    completion_tokens: int
    duration_ms: float
    #: None if no output was streamed.
    first_token_ms: float | None
    outcome: RequestOutcome

    def as_object(self) -> dict[str, Any]:
        return {
            "at": datetime.fromtimestamp(self.at, tz=UTC).isoformat(),
            "key": self.key,
            "route": self.route,
            "backend": self.backend,
            "operation": self.operation.value,
            "status": self.status,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "duration_ms": round(self.duration_ms, 3),
            "first_token_ms": None
            if self.first_token_ms is None
            else round(self.first_token_ms, 3),
            "outcome": self.outcome.value,
        }


class UsageReporter:
    """Collects records and delivers them to the control plane, which counts each once."""

    def __init__(
        self, *, journal: UsageJournal, metrics: GatewayMetrics, url: str, headers: dict[str, str]
    ) -> None:
        self._journal = journal
        self._metrics = metrics
        self._url = url
        self._headers = {**headers, "Content-Type": "application/json"}
        self._unwritten: deque[RequestUsage] = deque()
        self._rejected = 0
        self._written = asyncio.Event()
        self._written.set()
        self._stopping = asyncio.Event()
        self._writing = asyncio.Lock()

    def add(self, record: RequestUsage) -> None:
        if record.outcome is RequestOutcome.REJECTED:
            self._rejected += 1
            if self._rejected > MAX_REJECTED_PER_WRITE:
                self._metrics.dropped_records.add("too many rejected")
                return
        if len(self._unwritten) >= _MAX_UNWRITTEN:
            self._unwritten.popleft()
            self._metrics.dropped_records.add("disk refuses")
        self._unwritten.append(record)

    @property
    def unacknowledged_records(self) -> int:
        """Records that the control plane has not acknowledged."""
        return len(self._unwritten) + self._journal.pending_records

    @property
    def unacknowledged_bytes(self) -> int:
        """Size of the journal's unacknowledged batches."""
        return self._journal.pending_bytes

    async def run_writer(self) -> None:
        """Write records to the journal until :meth:`stop`."""
        while not self._stopping.is_set():
            try:
                async with asyncio.timeout(_WRITE_SECONDS):
                    await self._stopping.wait()
            except TimeoutError:
                await self._write_batches()

    async def _write_batches(self) -> None:
        async with self._writing:
            self._rejected = 0
            while self._unwritten:
                count = min(len(self._unwritten), MAX_BATCH_RECORDS)
                records = [self._unwritten.popleft() for _ in range(count)]
                try:
                    await asyncio.to_thread(self._append_records, records)
                except OSError:
                    logger.exception("usage cannot be written to the journal; it is kept in memory")
                    self._unwritten.extendleft(reversed(records))
                    return
                self._written.set()

    def _append_records(self, records: list[RequestUsage]) -> None:
        dropped = self._journal.dropped_records
        self._journal.append([record.as_object() for record in records])
        if (lost := self._journal.dropped_records - dropped) > 0:
            self._metrics.dropped_records.add("journal full", amount=lost)
            logger.error("the usage journal is full; dropped %d of its oldest records", lost)

    async def run_poster(self, session: aiohttp.ClientSession) -> None:
        """Post the journal's batches, oldest first, until cancelled."""
        backoff = _MIN_BACKOFF_SECONDS
        while True:
            await self._written.wait()
            self._written.clear()
            while not await self.post_all(session):
                await asyncio.sleep(backoff)
                backoff = min(backoff * 2, _MAX_BACKOFF_SECONDS)
            backoff = _MIN_BACKOFF_SECONDS

    async def post_all(self, session: aiohttp.ClientSession) -> bool:
        """Post all batches of the journal; whether each was acknowledged or refused for good."""
        while (found := await asyncio.to_thread(self._journal.oldest)) is not None:
            batch, body = found
            try:
                async with session.post(
                    self._url, data=body, headers=self._headers, timeout=_POST_TIMEOUT
                ) as response:
                    status = response.status
            except (aiohttp.ClientError, OSError) as error:
                logger.warning("usage cannot be posted: %r", error)
                return False
            if not await self._handle_answer(batch, status=status):
                return False
        return True

    async def _handle_answer(self, batch: UsageJournalBatch, *, status: int) -> bool:
        if status == 200:
            await asyncio.to_thread(self._journal.acknowledge, batch)
            self._metrics.posted_records.add(amount=batch.records)
            return True
        if status in _FINAL_REFUSALS:
            path = await asyncio.to_thread(self._journal.refuse, batch)
            self._metrics.dropped_records.add("refused", amount=batch.records)
            logger.error(
                "the control plane refused a usage batch with status %d; kept %s", status, path
            )
            return True
        logger.warning("usage was not accepted: status %d", status)
        return False

    async def stop(self, session: aiohttp.ClientSession, *, seconds: float) -> None:
        """Write the remaining records, and post them if that takes no longer than ``seconds``."""
        self._stopping.set()
        await self._write_batches()
        try:
            async with asyncio.timeout(seconds):
                await self.post_all(session)
        except TimeoutError:
            logger.warning("usage is left in the journal for the next start")
