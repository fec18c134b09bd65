"""A thread that sends what was read, the oldest first, for as long as it takes."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from ninefold_runtime.agent.backlog import Backlog
from ninefold_runtime.agent.batches import Batch
from ninefold_runtime.agent.pushes import Away, Refused, Server, Unwelcome, push
from ninefold_runtime.agent.sequences import Sequence
from ninefold_runtime.exits import NotReported

_LONGEST_PAUSE_SECONDS = 60.0


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
        first_pause_seconds: float = 1.0,
        say: Callable[[str], None] = print,
    ) -> None:
        self._server = server
        self._vendor = vendor
        self._token_now = token
        self._token = token()
        self._sequence = sequence
        self._first_pause = first_pause_seconds
        self._say = say
        self._backlog = Backlog(limit=keep)
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._send_forever, name="sender", daemon=True)
        self._end = ""
        self._away_since: float | None = None
        self._refusal = ""
        #: Batches that the control plane would not take.
        self.refused = 0

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
            self._backlog.add(batch)
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
                with self._news:
                    self._news.wait_for(lambda: len(self._backlog) > 0)
                    batch = self._backlog.oldest()
                self._insist(batch)
                with self._news:
                    self._backlog.settle(batch)
        except Exception as error:  # a thread that died in silence would look like a node that did
            self._finish(f"sending ended unforeseen: {type(error).__name__}: {error}")
            raise

    def _insist(self, batch: Batch) -> None:
        """Return once the batch is taken or refused."""
        number, pause = self._sequence.next(), self._first_pause
        while not self._end:
            try:
                done = push(
                    self._server, batch, sequence=number, vendor=self._vendor, token=self._token
                )
            except Away as away:
                self._note_away(away)
                # Nodes that lost the control plane together do not come back together.
                jittered = pause * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
                time.sleep(max(jittered, away.wait_seconds))
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
                continue
            except Refused as refusal:
                self._note_refusal(str(refusal))
                return
            except Unwelcome as refusal:
                if not self._has_new_token():
                    self._finish(
                        f"the control plane refuses the token: {refusal}; "
                        "give this node a new one, or name the node as the control plane does"
                    )
                continue
            self._note_back()
            if done.taken or done.sequence <= number:
                return
            # Somebody sent higher numbers for this node, perhaps we before the clock was set back.
            self._sequence.past(done.sequence)
            number = self._sequence.next()

    def _has_new_token(self) -> bool:
        """Whether the file holds another token than the one that was refused."""
        before = self._token
        try:
            self._token = self._token_now()
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the file, the refusal is the news
            self._say(f"the token cannot be read again: {error}")
        return self._token != before

    def _note_away(self, away: Away) -> None:
        if self._away_since is None:
            self._away_since = time.monotonic()
            self._say(f"the control plane is away, figures are kept: {away}")

    def _note_back(self) -> None:
        if self._away_since is not None:
            seconds = time.monotonic() - self._away_since
            self._away_since = None
            self._say(
                f"the control plane is back after {seconds:.0f} s; "
                f"{self.waiting} batches wait, {self.dropped} were given up"
            )

    def _note_refusal(self, words: str) -> None:
        self.refused += 1
        if words != self._refusal:
            self._say(f"a batch is refused and not sent again: {words}")
        self._refusal = words

    def _finish(self, words: str) -> None:
        with self._news:
            self._end = words
            self._news.notify_all()
