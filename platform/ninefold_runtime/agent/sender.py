"""A thread that sends batches: the newest at once, queued older ones behind it.

::

    read ──▶ backlog ──newest──▶ is its number above all that were answered? ──yes──▶ sent at once
                                         └──no──▶ sent at an interval, unless a new one comes first

A node that was unreachable is seen again with the first batch that arrives. The others fill the history, at an
interval that leaves room for new ones below what the control plane accepts of one node in a minute. The backlog
is bounded, since the control plane may be unreachable for days.

Batches are numbered: each number is one more than the last, and after a restart above all before it. The first
is at least the time in milliseconds, so that an agent without state continues above what it sent before:
batches are further apart than that. From then on there is no gap, so that the control plane knows which are
missing. The state file is for a clock that was set back: it holds a number above all that were given, and is
written seldom rather than with each batch.
"""

from __future__ import annotations

import os
import random
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ninefold_runtime.agent.card_samples import SampleBatch
from ninefold_runtime.agent.push_client import (
    AgentTokenRejected,
    ControlPlaneUnavailable,
    MetricBatchOutdated,
    MetricPushEndpoint,
    MetricPushFailed,
    MetricPushRejected,
    PushResult,
    push_batch,
)
from ninefold_runtime.exit_codes import ReportNotDelivered

_NUMBER = re.compile(r"\d+")
#: How often the control plane may fail on an overtaken batch before it is given up.
_MOST_FAILURES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SendIntervals:
    """Intervals and time-outs, in seconds."""

    #: Before a retry; doubled each time, up to the longest, which is how long the node may stay unreported once
    #: the control plane is back.
    first_pause: float = 1.0
    longest_pause: float = 15.0
    #: Between two batches that newer ones have overtaken. 50 of them and 60 new ones, the most that are read, are
    #: below the 120 that the control plane takes in a minute.
    behind: float = 1.2
    #: Before one of those is sent again that could not be taken; twice as long after each time that the control
    #: plane failed on it.
    again: float = 15.0
    #: For each step of sending a batch. For an overtaken one it is what a new batch may have to wait, and more
    #: than the control plane takes to say that it is held up.
    patience: float = 10.0
    patience_behind: float = 3.0


class BatchSender:
    """Takes batches and never blocks who gives them."""

    def __init__(
        self,
        server: MetricPushEndpoint,
        *,
        vendor: str,
        token: Callable[[], str],
        sequence: BatchSequence,
        keep: int,
        intervals: SendIntervals = SendIntervals(),
        log: Callable[[str], None] = print,
    ) -> None:
        self._server = server
        self._vendor = vendor
        self._token_now = token
        self._token = token()
        self._sequence = sequence
        self._intervals = intervals
        self._log = log
        self._backlog = BatchBacklog(limit=keep)
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._send_forever, name="sender", daemon=True)
        self._end = ""
        self._away_since: float | None = None
        self._refusal = ""
        self._untaken_logged = False
        #: The highest number that was answered: what is below it was overtaken.
        self._answered = 0
        #: When the next of those may be sent, by the monotonic clock.
        self._behind_at = 0.0
        self._pause = intervals.first_pause
        #: Batches that the control plane would not take, or failed on again and again.
        self.refused = 0
        #: Batches that did not count: they had before, or their numbers were not remembered as missing.
        self.untaken = 0

    def start(self) -> None:
        self._thread.start()

    @property
    def waiting(self) -> int:
        return len(self._backlog)

    @property
    def dropped(self) -> int:
        """Batches given up because the control plane was away for too long."""
        return self._backlog.dropped

    def add(self, batch: SampleBatch) -> None:
        with self._changed:
            self._backlog.add(QueuedMetricBatch(number=self._sequence.next(), batch=batch))
            self._changed.notify_all()

    def pause(self, seconds: float) -> None:
        """Wait that long, or until nothing can be sent any more.

        :raises ReportNotDelivered: if the control plane refuses the token.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._end, seconds)
        if self._end:
            raise ReportNotDelivered(self._end)

    def _send_forever(self) -> None:
        try:
            while not self._end:
                self._send_batch(self._next_batch())
        except Exception as error:  # an untraced death would look like a dead node
            self._stop_sending(f"sending ended unforeseen: {type(error).__name__}: {error}")
            raise

    def _next_batch(self) -> QueuedMetricBatch:
        """The newest batch that may be sent, once there is one."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._backlog) > 0)
            while True:
                now = time.monotonic()
                waiting = self._backlog.newest(now=now)
                due = self._behind_at if self._is_older_batch(waiting) else 0.0
                early = max(due, waiting.not_before) - now
                if early <= 0:
                    return waiting
                self._changed.wait(early)

    def _is_older_batch(self, waiting: QueuedMetricBatch) -> bool:
        return waiting.number < self._answered

    def _send_batch(self, waiting: QueuedMetricBatch) -> None:
        """Send it once. Without an answer it waits on, under its number."""
        behind = self._is_older_batch(waiting)
        try:
            answer = push_batch(
                self._server,
                waiting.batch,
                sequence=waiting.number,
                vendor=self._vendor,
                token=self._token,
                timeout_seconds=self._intervals.patience_behind
                if behind
                else self._intervals.patience,
            )
        except ControlPlaneUnavailable as away:
            if behind:
                self._retry_later(waiting, away)
            else:
                self._back_off(away)
        except AgentTokenRejected as refusal:
            if not self._has_new_token():
                self._stop_sending(
                    f"the control plane refuses the token: {refusal}; "
                    "give this node a new one, or name the node as the control plane does"
                )
        except MetricPushRejected as refusal:
            self._discard_batch(waiting, refusal)
        else:
            self._complete_batch(waiting, answer)
        if behind:
            self._behind_at = max(self._behind_at, time.monotonic() + self._intervals.behind)

    def _retry_later(self, waiting: QueuedMetricBatch, away: ControlPlaneUnavailable) -> None:
        """Send it again later, the next lower one first; it holds up no new batch."""
        now = time.monotonic()
        self._behind_at = now + away.wait_seconds
        waiting.not_before = now + self._intervals.again * 2**waiting.failures
        if not isinstance(away, MetricPushFailed):
            return
        waiting.failures += 1
        if waiting.failures >= _MOST_FAILURES:
            with self._changed:
                self._backlog.remove(waiting)
            self.refused += 1
            self._log_once(
                f"a kept batch is given up: the control plane failed on it {_MOST_FAILURES} times: {away}"
            )

    def _back_off(self, away: ControlPlaneUnavailable) -> None:
        """Ask again later."""
        # Nodes that lost the control plane together do not come back together.
        jittered = self._pause * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
        seconds = max(jittered, away.wait_seconds)
        self._pause = min(self._pause * 2, self._intervals.longest_pause)
        if self._away_since is None:
            self._away_since = time.monotonic()
            self._log(f"the control plane is away, figures are kept: {away}")
        time.sleep(seconds)

    def _complete_batch(self, waiting: QueuedMetricBatch, answer: PushResult) -> None:
        """It was answered."""
        with self._changed:
            if answer.known > self._sequence.last:
                # Somebody sent higher numbers for this node, perhaps we before the clock was set back: below them
                # nothing counts as new.
                self._sequence.past(answer.known)
                self._backlog.renumber(self._sequence.next)
            else:
                self._backlog.remove(waiting)
                self._answered = max(self._answered, waiting.number)
                if not answer.taken:
                    self._count_unaccepted_batch()
        self._pause, self._refusal = self._intervals.first_pause, ""
        if self._away_since is not None:
            seconds = time.monotonic() - self._away_since
            self._away_since = None
            self._untaken_logged = False
            self._log(
                f"the control plane is back after {seconds:.0f} s; "
                f"{self.waiting} batches wait, {self.dropped} were given up"
            )

    def _count_unaccepted_batch(self) -> None:
        """Count it; it is logged once after each outage of the control plane."""
        self.untaken += 1
        if not self._untaken_logged:
            self._untaken_logged = True
            self._log(
                "a kept batch was not taken: counted before, or no longer remembered by the control plane; "
                "others like it are counted and not told"
            )

    def _discard_batch(self, waiting: QueuedMetricBatch, refusal: MetricPushRejected) -> None:
        """It is never taken; one that is too old takes those before it along."""
        with self._changed:
            self._answered = max(self._answered, waiting.number)
            if isinstance(refusal, MetricBatchOutdated):
                count = self._backlog.remove_measured_until(waiting.batch.at)
                message = f"too old for the control plane, {count} batches are dropped: {refusal}"
            else:
                count = 1
                self._backlog.remove(waiting)
                message = f"a batch is refused and not sent again: {refusal}"
        self.refused += count
        self._log_once(message)

    def _log_once(self, message: str) -> None:
        """Say why a batch is given up."""
        # The same message with other numbers and times is logged once in a row.
        kind = _NUMBER.sub("", message)
        if kind != self._refusal:
            self._log(message)
        self._refusal = kind

    def _has_new_token(self) -> bool:
        """Whether the file holds another token than the one that was refused."""
        before = self._token
        try:
            self._token = self._token_now()
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the file, the refusal is the news
            self._log(f"the token cannot be read again: {error}")
        return self._token != before

    def _stop_sending(self, message: str) -> None:
        with self._changed:
            self._end = message
            self._changed.notify_all()


@dataclass(slots=True, kw_only=True, eq=False)
class QueuedMetricBatch:
    """A batch and the number that it has each time that it is sent."""

    number: int
    batch: SampleBatch
    #: How often the control plane failed on it, and when it may be sent again, by the monotonic clock.
    failures: int = 0
    not_before: float = 0.0


class BatchBacklog:
    """The newest ``limit`` batches, in the order of their numbers.

    Not for several threads without a lock around it.
    """

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._all: deque[QueuedMetricBatch] = deque()
        #: How many were given up because newer ones came.
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._all)

    def add(self, waiting: QueuedMetricBatch) -> None:
        if len(self._all) >= self._limit:
            self._all.popleft()
            self.dropped += 1
        self._all.append(waiting)

    def newest(self, *, now: float) -> QueuedMetricBatch:
        """The newest that may be sent now; where none may, the one that may be soonest.

        :raises ValueError: if there is none.
        """
        for waiting in reversed(self._all):
            if waiting.not_before <= now:
                return waiting
        return min(self._all, key=lambda waiting: waiting.not_before)

    def remove(self, waiting: QueuedMetricBatch) -> None:
        """Take it out if it is still there: while it was under way it may have been given up."""
        if waiting in self._all:
            self._all.remove(waiting)

    def remove_measured_until(self, at: datetime) -> int:
        """Take out all that were measured until then; how many those were."""
        remaining = [waiting for waiting in self._all if waiting.batch.at > at]
        count = len(self._all) - len(remaining)
        self._all = deque(remaining)
        return count

    def renumber(self, number: Callable[[], int]) -> None:
        """Give each another number, in their order."""
        for waiting in self._all:
            waiting.number = number()


#: The highest number that the control plane takes.
_LARGEST = 2**63 - 1
#: How far ahead of what was given the file is. An agent that starts again leaps no further than that: a minute, as
#: milliseconds run.
_AHEAD = 60_000


class BatchSequence:
    """Gives numbers; ``path`` is where it remembers, None where it need not."""

    def __init__(
        self,
        path: Path | None,
        *,
        now: Callable[[], float] = time.time,
        log: Callable[[str], None] = print,
    ) -> None:
        self._path = path
        self._log = log
        self._bound = self._read_sequence()
        #: The highest that was given; before the first, the one below it.
        self.last = max(self._bound, int(now() * 1000), 1) - 1

    def next(self) -> int:
        """One more than the last, 1 at least."""
        self.last += 1
        if self.last >= self._bound:
            self._bound = self.last + _AHEAD
            self._write_sequence()
        return self.last

    def past(self, number: int) -> None:
        """Continue above a number that another sender assigned."""
        self.last = max(self.last, number)

    def _read_sequence(self) -> int:
        if self._path is None:
            return 0
        try:
            number = int(self._path.read_text(encoding="ascii"))
            if not 0 <= number <= _LARGEST - _AHEAD:
                raise ValueError(f"{number} is no number that can be gone on from")
            return number
        except FileNotFoundError:
            return 0
        except (OSError, ValueError) as error:
            self._log(f"{self._path} cannot be used, numbers begin at the time: {error}")
            return 0

    def _write_sequence(self) -> None:
        if self._path is None:
            return
        draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            draft.write_text(f"{self._bound}\n", encoding="ascii")
            draft.replace(self._path)
        except OSError as error:
            self._log(f"numbers of batches are not remembered: {error}")
