"""The owners of the work: they ask for cards, let it run for its time, and give the cards back.

One thread asks, as the product's web does; one learns from the outbox what was given, and one gives back, as the
product's own loops do. Who is told to stop gives its cards back at once and asks anew, in its old place in the
line. What is due at the same moment is done in one step.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heappop, heappush

from django.db import connection
from django.utils import timezone

from apps.accounts.models import Team
from apps.quotas import services
from apps.quotas.models import Queue
from controlplane.domain.quotas.claims import ReleaseReason
from controlplane.outbox import messages
from tests.benchmarks.queues.bells import Bell
from tests.benchmarks.queues.companies import CHIP, leaf, shape_of
from tests.benchmarks.queues.loads import Load, Piece
from tests.benchmarks.queues.processors import spent

#: What they listen to; that a claim came or went is for the scheduler.
TOPICS = ("claim.requested", "claim.admitted", "claim.revoking", "claim.released")
#: Pieces that are asked for in one step, before what has ended is looked at again.
AT_ONCE = 100
#: Seconds between two looks when nothing is due.
PAUSE = 0.002
#: Seconds after which news is looked for without being told of any.
BEAT = 0.05


@dataclass(slots=True, kw_only=True)
class Work:
    """One piece from its first request to its end."""

    piece: Piece
    name: str
    asked_at: float
    #: Its place in the line.
    since: datetime
    #: Admissions; more than one if it was evicted.
    starts: int = 0
    #: Seconds from the first request to the first admission.
    waited: float = 0.0


@dataclass(slots=True, kw_only=True)
class Owners:
    """All of them, in three threads."""

    load: Load
    team: Team
    #: Rung when there may be some.
    changes: Bell
    #: By claim, that waits or runs.
    work: dict[str, Work] = field(default_factory=dict)
    finished: list[Work] = field(default_factory=list)
    #: Seconds spent on each kind of act.
    spent: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    evictions: int = 0
    #: Seconds of a processor of the database that served those who ask and those who give back.
    database: float = 0.0
    began: float = 0.0
    _ends: list[tuple[float, str]] = field(default_factory=list)
    #: Claims that were admitted before whoever asked had written down that it had.
    _early: set[str] = field(default_factory=set)
    #: Of ``work``, ``_ends`` and ``_early``.
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _over: threading.Event = field(default_factory=threading.Event)

    def run(self, *, within: float) -> float:
        """Play the load to its end; seconds from the first request to the last end.

        :raises TimeoutError: if it has not ended within so many seconds.
        """
        queues = {queue.uid: queue for queue in Queue.objects.all()}
        coming = deque(self.load.timetable())
        self.began = time.monotonic() - coming[0].due.total_seconds()
        first = time.monotonic()
        with ThreadPoolExecutor(max_workers=2) as pool:
            asking = pool.submit(
                self._repeat, lambda: self._submit(coming, queues), until=lambda: not coming
            )
            giving = pool.submit(self._repeat, self._give_back)
            try:
                while (not asking.done() or self.work) and not giving.done():
                    if not self._relay(queues):
                        self.changes.wait(seconds=BEAT)
                    if time.monotonic() - first > within:
                        raise TimeoutError(
                            f"{len(self.finished)} of {self.load.pieces} pieces have ended within {within} s"
                        )
            finally:
                self._over.set()
            asking.result()
            giving.result()
        return time.monotonic() - first

    def _repeat(self, step: Callable[[], int], *, until: Callable[[], bool] = bool) -> None:
        """Do it until that holds, or all is over; with a pause whenever it found nothing to do."""
        try:
            while not (until() or self._over.is_set()):
                if not step():
                    time.sleep(PAUSE)
            with self._lock:
                self.database += spent().database
        finally:
            connection.close()

    def _submit(self, coming: deque[Piece], queues: Mapping[str, Queue]) -> int:
        """Ask for each that is due; how many were."""
        begin = time.monotonic()
        asked = self._due(coming, at=begin)
        if asked:
            self._request(asked, queues)
            self.spent["request"] += time.monotonic() - begin
        return len(asked)

    def _due(self, coming: deque[Piece], *, at: float) -> list[Work]:
        """The next that have been due by then, at most ``AT_ONCE``."""
        due: list[Work] = []
        while coming and len(due) < AT_ONCE and coming[0].due.total_seconds() <= at - self.began:
            piece = coming.popleft()
            name = f"{piece.work.name}-{len(coming)}"
            due.append(Work(piece=piece, name=name, asked_at=at, since=timezone.now()))
        return due

    def _request(self, works: Sequence[Work], queues: Mapping[str, Queue]) -> None:
        claims = services.claims_create(requests=[self._asked(each, queues) for each in works])
        with self._lock:
            for claim, work in zip(claims, works, strict=True):
                self.work[claim.uid] = work
                if claim.uid in self._early:
                    self._early.remove(claim.uid)
                    self._start(claim.uid)

    def _asked(self, work: Work, queues: Mapping[str, Queue]) -> services.ClaimRequest:
        wanted = work.piece.work
        return services.ClaimRequest(
            owner=("load", f"{work.name}-{work.starts}"),
            team=self.team,
            queue=queues[leaf(self.load, work.piece.queue)],
            shape=shape_of(wanted),
            chips=(CHIP,),
            priority=wanted.priority,
            work=services.ClaimWorkload(kind="load", uid=work.name, name=work.name),
            terms=services.ClaimTerms(
                preemptible=True,
                within=wanted.within,
                near=wanted.near,
                in_line_since=work.since if work.starts else None,
            ),
        )

    def _give_back(self) -> int:
        begin = time.monotonic()
        ended: dict[str, Work] = {}
        with self._lock:
            while self._ends and self._ends[0][0] <= begin:
                _end, uid = heappop(self._ends)
                # It may have been evicted meanwhile.
                if (work := self.work.pop(uid, None)) is not None:
                    ended[uid] = work
        if ended:
            services.claims_release(
                uids=list(ended), reason=ReleaseReason.FINISHED, at=timezone.now()
            )
            self.finished += ended.values()
        self.spent["release"] += time.monotonic() - begin
        return len(ended)

    def _relay(self, queues: Mapping[str, Queue]) -> int:
        begin = time.monotonic()
        evicted: dict[str, Work] = {}

        def send(topic: str, payload: Mapping[str, str]) -> None:
            uid = payload["claim_uid"]
            with self._lock:
                if topic == "claim.admitted" and uid in self.work:
                    self._start(uid)
                elif topic == "claim.admitted":
                    self._early.add(uid)
                elif topic == "claim.revoking" and uid in self.work:
                    evicted[uid] = self.work.pop(uid)

        relayed = messages.relay_messages(send)
        if evicted:
            services.claims_release(
                uids=list(evicted), reason=ReleaseReason.PREEMPTED, at=timezone.now()
            )
            self._request(list(evicted.values()), queues)
            self.evictions += len(evicted)
        self.spent["hear"] += time.monotonic() - begin
        return relayed

    def _start(self, uid: str) -> None:
        work, now = self.work[uid], time.monotonic()
        if not work.starts:
            work.waited = now - work.asked_at
        work.starts += 1
        heappush(self._ends, (now + work.piece.work.runtime.total_seconds(), uid))
