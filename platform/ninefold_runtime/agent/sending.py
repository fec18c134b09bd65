"""A thread that sends what was read: the newest at once, and what was kept while that was not possible behind it.

::

    read ──▶ backlog ──newest──▶ is it above all that were answered? ──yes──▶ sent at once
                                         └──no──▶ sent as its turn comes, unless a new one comes first

A node that was away is heard of with the first batch that arrives. The others fill the history, at a pace that
leaves room for new ones below what the control plane takes of one node in a minute.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from ninefold_runtime.agent.backlog import Backlog, Waiting
from ninefold_runtime.agent.batches import Batch
from ninefold_runtime.agent.pushes import (
    Answer,
    Away,
    Failed,
    Outdated,
    Refused,
    Server,
    Unwelcome,
    push,
)
from ninefold_runtime.agent.sequences import Sequence
from ninefold_runtime.exits import NotReported

_NUMBER = re.compile(r"\d+")
#: How often the control plane may fail on an overtaken batch before it is given up.
_MOST_FAILURES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often is asked, and how long an answer is waited for, in seconds."""

    #: Before it is asked again; twice as long each time, up to the longest: so long it may take until the node is
    #: heard of, once the control plane is back.
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


class Sender:
    """Takes batches and never blocks who gives them."""

    def __init__(
        self,
        server: Server,
        *,
        vendor: str,
        token: Callable[[], str],
        sequence: Sequence,
        keep: int,
        pace: Pace = Pace(),
        say: Callable[[str], None] = print,
    ) -> None:
        self._server = server
        self._vendor = vendor
        self._token_now = token
        self._token = token()
        self._sequence = sequence
        self._pace = pace
        self._say = say
        self._backlog = Backlog(limit=keep)
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._send_forever, name="sender", daemon=True)
        self._end = ""
        self._away_since: float | None = None
        self._refusal = ""
        self._untaken_said = False
        #: The highest number that was answered: what is below it was overtaken.
        self._answered = 0
        #: When the next of those may be sent, by the monotonic clock.
        self._behind_at = 0.0
        self._pause = pace.first_pause
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

    def add(self, batch: Batch) -> None:
        with self._news:
            self._backlog.add(Waiting(number=self._sequence.next(), batch=batch))
            self._news.notify_all()

    def pause(self, seconds: float) -> None:
        """Wait that long, or until nothing can be sent any more.

        :raises NotReported: if the control plane refuses the token.
        """
        with self._news:
            self._news.wait_for(lambda: self._end, seconds)
        if self._end:
            raise NotReported(self._end)

    def _send_forever(self) -> None:
        try:
            while not self._end:
                self._send(self._next())
        except Exception as error:  # a thread that died in silence would look like a node that did
            self._finish(f"sending ended unforeseen: {type(error).__name__}: {error}")
            raise

    def _next(self) -> Waiting:
        """The newest batch that may be sent, once there is one."""
        with self._news:
            self._news.wait_for(lambda: len(self._backlog) > 0)
            while True:
                now = time.monotonic()
                waiting = self._backlog.newest(now=now)
                due = self._behind_at if self._is_behind(waiting) else 0.0
                early = max(due, waiting.not_before) - now
                if early <= 0:
                    return waiting
                self._news.wait(early)

    def _is_behind(self, waiting: Waiting) -> bool:
        return waiting.number < self._answered

    def _send(self, waiting: Waiting) -> None:
        """Send it once. Without an answer it waits on, under its number."""
        behind = self._is_behind(waiting)
        try:
            answer = push(
                self._server,
                waiting.batch,
                sequence=waiting.number,
                vendor=self._vendor,
                token=self._token,
                timeout_seconds=self._pace.patience_behind if behind else self._pace.patience,
            )
        except Away as away:
            if behind:
                self._put_off(waiting, away)
            else:
                self._hold(away)
        except Unwelcome as refusal:
            if not self._has_new_token():
                self._finish(
                    f"the control plane refuses the token: {refusal}; "
                    "give this node a new one, or name the node as the control plane does"
                )
        except Refused as refusal:
            self._give_up(waiting, refusal)
        else:
            self._settle(waiting, answer)
        if behind:
            self._behind_at = max(self._behind_at, time.monotonic() + self._pace.behind)

    def _put_off(self, waiting: Waiting, away: Away) -> None:
        """Send it again later, the next lower one first; it holds up no new batch."""
        now = time.monotonic()
        self._behind_at = now + away.wait_seconds
        waiting.not_before = now + self._pace.again * 2**waiting.failures
        if not isinstance(away, Failed):
            return
        waiting.failures += 1
        if waiting.failures >= _MOST_FAILURES:
            with self._news:
                self._backlog.settle(waiting)
            self.refused += 1
            self._tell(
                f"a kept batch is given up: the control plane failed on it {_MOST_FAILURES} times: {away}"
            )

    def _hold(self, away: Away) -> None:
        """Ask again later."""
        # Nodes that lost the control plane together do not come back together.
        jittered = self._pause * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
        seconds = max(jittered, away.wait_seconds)
        self._pause = min(self._pause * 2, self._pace.longest_pause)
        if self._away_since is None:
            self._away_since = time.monotonic()
            self._say(f"the control plane is away, figures are kept: {away}")
        time.sleep(seconds)

    def _settle(self, waiting: Waiting, answer: Answer) -> None:
        """It was answered."""
        with self._news:
            if answer.known > self._sequence.last:
                # Somebody sent higher numbers for this node, perhaps we before the clock was set back: below them
                # nothing counts as new.
                self._sequence.past(answer.known)
                self._backlog.renumber(self._sequence.next)
            else:
                self._backlog.settle(waiting)
                self._answered = max(self._answered, waiting.number)
                if not answer.taken:
                    self._note_untaken()
        self._pause, self._refusal = self._pace.first_pause, ""
        if self._away_since is not None:
            seconds = time.monotonic() - self._away_since
            self._away_since = None
            self._untaken_said = False
            self._say(
                f"the control plane is back after {seconds:.0f} s; "
                f"{self.waiting} batches wait, {self.dropped} were given up"
            )

    def _note_untaken(self) -> None:
        """Count it; it is told once after each time that the control plane was away."""
        self.untaken += 1
        if not self._untaken_said:
            self._untaken_said = True
            self._say(
                "a kept batch was not taken: counted before, or no longer remembered by the control plane; "
                "others like it are counted and not told"
            )

    def _give_up(self, waiting: Waiting, refusal: Refused) -> None:
        """It is never taken; one that is too old takes those before it along."""
        with self._news:
            self._answered = max(self._answered, waiting.number)
            if isinstance(refusal, Outdated):
                count = self._backlog.settle_until(waiting.batch.at)
                words = f"too old for the control plane, {count} batches are dropped: {refusal}"
            else:
                count = 1
                self._backlog.settle(waiting)
                words = f"a batch is refused and not sent again: {refusal}"
        self.refused += count
        self._tell(words)

    def _tell(self, words: str) -> None:
        """Say why a batch is given up."""
        # The same with other numbers and times is told once in a row.
        kind = _NUMBER.sub("", words)
        if kind != self._refusal:
            self._say(words)
        self._refusal = kind

    def _has_new_token(self) -> bool:
        """Whether the file holds another token than the one that was refused."""
        before = self._token
        try:
            self._token = self._token_now()
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the file, the refusal is the news
            self._say(f"the token cannot be read again: {error}")
        return self._token != before

    def _finish(self, words: str) -> None:
        with self._news:
            self._end = words
            self._news.notify_all()
