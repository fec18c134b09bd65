"""Who used what: records in memory, twice a second to the journal, from there to the control plane.

``kill -9`` loses what came since the last write, which is less than a second's worth.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import aiohttp

from gateway.journals import LARGEST_BATCH_RECORDS, Batch, Journal
from gateway.metrics import Metrics
from gateway.snapshots import Operation

logger = logging.getLogger(__name__)

_WRITE_SECONDS = 0.5
_SHORTEST_BACKOFF_SECONDS = 0.5
_LONGEST_BACKOFF_SECONDS = 10.0
_POST_TIMEOUT = aiohttp.ClientTimeout(total=30.0)

#: Records kept in memory while the disk refuses them.
_MOST_UNWRITTEN = 200_000
#: Rejected requests recorded between two writes. They carry no tokens, and a client that ignores
#: its limits could otherwise push served requests out of a full journal.
MOST_REJECTED_PER_WRITE = 500

#: The control plane understood the batch and will not take it, however often it is sent.
_FINAL_REFUSALS = frozenset({400, 413, 415, 422})


class Outcome(StrEnum):
    OK = "ok"
    #: The engine, or the way to it, failed; or the engine refused the request.
    ERROR = "error"
    #: The client left before the end.
    ABORTED = "aborted"
    #: The gateway refused it: a limit, or no endpoint ready.
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRecord:
    """One request to a route, ended."""

    #: When it ended, in seconds since 1970.
    at: float
    key: str
    route: str
    #: None if no backend was reached.
    backend: str | None
    operation: Operation
    status: int
    prompt_tokens: int
    completion_tokens: int
    duration_ms: float
    #: None if no part of an answer was streamed.
    first_token_ms: float | None
    outcome: Outcome

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


class Usage:
    """Takes records and sees to it that the control plane gets each once."""

    def __init__(
        self, *, journal: Journal, metrics: Metrics, url: str, headers: dict[str, str]
    ) -> None:
        self._journal = journal
        self._metrics = metrics
        self._url = url
        self._headers = {**headers, "Content-Type": "application/json"}
        self._unwritten: deque[UsageRecord] = deque()
        self._rejected = 0
        self._written = asyncio.Event()
        self._written.set()
        self._stopping = asyncio.Event()
        self._writing = asyncio.Lock()

    def add(self, record: UsageRecord) -> None:
        if record.outcome is Outcome.REJECTED:
            self._rejected += 1
            if self._rejected > MOST_REJECTED_PER_WRITE:
                self._metrics.dropped_records.add("too many rejected")
                return
        if len(self._unwritten) >= _MOST_UNWRITTEN:
            self._unwritten.popleft()
            self._metrics.dropped_records.add("disk refuses")
        self._unwritten.append(record)

    @property
    def waiting_records(self) -> int:
        """Records that the control plane has not acknowledged."""
        return len(self._unwritten) + self._journal.pending_records

    @property
    def waiting_bytes(self) -> int:
        """Size of the journal's unacknowledged batches."""
        return self._journal.pending_bytes

    async def write_for_ever(self) -> None:
        """Bring records to the journal until :meth:`stop`."""
        while not self._stopping.is_set():
            try:
                async with asyncio.timeout(_WRITE_SECONDS):
                    await self._stopping.wait()
            except TimeoutError:
                await self._write()

    async def _write(self) -> None:
        async with self._writing:
            self._rejected = 0
            while self._unwritten:
                count = min(len(self._unwritten), LARGEST_BATCH_RECORDS)
                records = [self._unwritten.popleft() for _ in range(count)]
                try:
                    await asyncio.to_thread(self._append, records)
                except OSError:
                    logger.exception("usage cannot be written to the journal; it is kept in memory")
                    self._unwritten.extendleft(reversed(records))
                    return
                self._written.set()

    def _append(self, records: list[UsageRecord]) -> None:
        dropped = self._journal.dropped_records
        self._journal.append([record.as_object() for record in records])
        if (lost := self._journal.dropped_records - dropped) > 0:
            self._metrics.dropped_records.add("journal full", amount=lost)
            logger.error("the usage journal is full; dropped %d of its oldest records", lost)

    async def post_for_ever(self, session: aiohttp.ClientSession) -> None:
        """Post the journal's batches, oldest first, until cancelled."""
        backoff = _SHORTEST_BACKOFF_SECONDS
        while True:
            await self._written.wait()
            self._written.clear()
            while not await self.post_all(session):
                await asyncio.sleep(backoff)
                backoff = min(backoff * 2, _LONGEST_BACKOFF_SECONDS)
            backoff = _SHORTEST_BACKOFF_SECONDS

    async def post_all(self, session: aiohttp.ClientSession) -> bool:
        """Post what the journal holds; whether all of it has been answered for good."""
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
            if not await self._answered(batch, status=status):
                return False
        return True

    async def _answered(self, batch: Batch, *, status: int) -> bool:
        if status == 200:
            await asyncio.to_thread(self._journal.acknowledge, batch)
            self._metrics.posted_records.add(amount=batch.records)
            return True
        if status in _FINAL_REFUSALS:
            kept = await asyncio.to_thread(self._journal.refuse, batch)
            self._metrics.dropped_records.add("refused", amount=batch.records)
            logger.error(
                "the control plane refused a usage batch with status %d; kept %s", status, kept
            )
            return True
        logger.warning("usage was not accepted: status %d", status)
        return False

    async def stop(self, session: aiohttp.ClientSession, *, seconds: float) -> None:
        """Write what is left, and post it if that takes no longer than ``seconds``."""
        self._stopping.set()
        await self._write()
        try:
            async with asyncio.timeout(seconds):
                await self.post_all(session)
        except TimeoutError:
            logger.warning("usage is left in the journal for the next start")
