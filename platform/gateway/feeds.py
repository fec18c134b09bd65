"""Where snapshots come from: a long poll of the control plane, and the last one's copy on disk.

The copy lets a gateway start while the control plane is away. It carries the control plane's
signature and is checked like an answer. A snapshot past its ``stale_at`` is never served, so a
gateway that nobody can tell of revoked keys falls silent by itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from random import SystemRandom

import aiohttp

from gateway.files import write_durably
from gateway.metrics import Metrics
from gateway.snapshots import Snapshot, SnapshotRefused, open_snapshot

logger = logging.getLogger(__name__)

_WAIT_SECONDS = 20
_POLL_TIMEOUT = aiohttp.ClientTimeout(total=_WAIT_SECONDS + 10.0)
_SHORTEST_BACKOFF_SECONDS = 0.25
_LONGEST_BACKOFF_SECONDS = 5.0
#: Least time between two requests for a newly issued snapshot while nothing has changed.
_RENEWAL_SECONDS = 60.0


class PollFailed(Exception):
    """The control plane answered with something that is not a snapshot."""


class SnapshotFeed:
    """Keeps the current snapshot current."""

    def __init__(
        self,
        *,
        url: str,
        token: str,
        headers: dict[str, str],
        copy: Path,
        install: Callable[[Snapshot], None],
        metrics: Metrics,
        wall: Callable[[], float],
    ) -> None:
        self._url = url
        self._token = token
        self._headers = headers
        self._copy = copy
        self._install = install
        self._metrics = metrics
        self._wall = wall
        self._current: Snapshot | None = None
        self._renewed_at = 0.0

    def load_copy(self) -> None:
        """Start from the copy on disk, if there is one and it is whole and signed."""
        try:
            signature, _, body = self._copy.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return
        except OSError:
            logger.exception("the copy of the snapshot cannot be read")
            return
        try:
            self._accept(body, signature=signature.decode("ascii", "replace"))
        except SnapshotRefused as refusal:
            self._metrics.snapshots.add("copy refused")
            logger.error("the copy of the snapshot is refused: %s", refusal)

    def _accept(self, body: bytes, *, signature: str) -> bool:
        """Install the snapshot in the body if it is newer than the current one; whether it is."""
        snapshot = open_snapshot(body, signature=signature, token=self._token)
        if self._current is not None and not snapshot.supersedes(self._current):
            return False
        self._current = snapshot
        self._install(snapshot)
        return True

    async def poll_for_ever(self, session: aiohttp.ClientSession) -> None:
        """Follow the control plane until cancelled."""
        # Spread, so that gateways do not all return at once to a control plane that restarted.
        spread = SystemRandom()
        backoff = _SHORTEST_BACKOFF_SECONDS
        while True:
            try:
                await self._poll(session)
                backoff = _SHORTEST_BACKOFF_SECONDS
            except SnapshotRefused as refusal:
                self._metrics.snapshots.add("refused")
                logger.error("a snapshot is refused, the old one stays: %s", refusal)
            except (PollFailed, aiohttp.ClientError, OSError) as error:
                self._metrics.snapshots.add("failed")
                logger.warning("no snapshot to be had: %r", error)
            else:
                continue
            await asyncio.sleep(backoff * spread.uniform(0.5, 1.0))
            backoff = min(backoff * 2, _LONGEST_BACKOFF_SECONDS)

    async def _poll(self, session: aiohttp.ClientSession) -> None:
        parameters = {"after": self._after(), "wait": _WAIT_SECONDS}
        async with session.get(
            self._url, params=parameters, headers=self._headers, timeout=_POLL_TIMEOUT
        ) as response:
            if response.status == 304:
                return
            if response.status != 200:
                raise PollFailed(f"the control plane answered with status {response.status}")
            body = await response.read()
            signature = response.headers.get("X-Ninefold-Signature", "")
        if not self._accept(body, signature=signature):
            self._metrics.snapshots.add("not newer")
            return
        self._metrics.snapshots.add("installed")
        await asyncio.to_thread(self._keep, body, signature)

    def _after(self) -> int:
        """The version to wait past.

        "Nothing newer" is not signed and so prolongs no snapshot's life: one that is half stale
        is asked for anew, whatever its version.
        """
        if self._current is None:
            return 0
        now = self._wall()
        age = now - self._current.issued_at.timestamp()
        due = age > self._current.max_stale.total_seconds() / 2
        if due and now - self._renewed_at >= _RENEWAL_SECONDS:
            self._renewed_at = now
            return 0
        return self._current.version

    def _keep(self, body: bytes, signature: str) -> None:
        try:
            write_durably(self._copy, signature.encode("latin-1") + b"\n" + body)
        except OSError:
            # What is in memory serves as well; only a restart would miss the copy.
            logger.exception("the copy of the snapshot cannot be written")
