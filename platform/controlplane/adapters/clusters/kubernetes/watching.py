"""Follow a cluster, so that a change is known within a second and nobody has to ask all the time.

::

    follower of our pods ─────┐
    follower of nodes ────────┤ mark ──▶ Marks ── at most every 0.2 s ──▶ launches_changed, nodes_changed
    follower of others' pods ─┘
    pulse: asks for the version when nothing was heard for 20 s ────────▶ alive

Each follower lists (in pages), then watches from the listing's version, for ever (see ``watching_rules`` for
what follows which end). An event only marks a name: what it means is asked of the cluster by whoever hears of it,
so that an event which comes twice does no harm, and a full listing every ten minutes makes good whatever was lost.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from controlplane.adapters.clusters.kubernetes.api import Api, ApiRefused
from controlplane.adapters.clusters.kubernetes.watching_followers import (
    USUAL,
    Follower,
    Following,
    Terms,
)
from controlplane.adapters.clusters.kubernetes.watching_rules import Marks
from controlplane.adapters.clusters.kubernetes.watching_subjects import (
    Nodes,
    OthersPods,
    OurPods,
    Subject,
)
from controlplane.ports.clusters import ClusterError

log = logging.getLogger(__name__)

#: How often names are told at most.
_TELL_EVERY: Final = 0.2
#: After a listener failed: the same names are told again.
_TELL_AGAIN: Final = 1.0
#: How often ``stopping`` is looked at while nothing happens.
_LOOK_EVERY: Final = 0.5
#: How often ``alive`` is called at most.
_ALIVE_EVERY: Final = 5.0
#: How long threads may take to end. One that waits for a first byte takes longer; it says nothing any more.
_END_WITHIN: Final = 0.4


class Watcher:
    """Follows everything that we want to know of one cluster, once."""

    def __init__(self, api: Api, *, installation: str, terms: Terms = USUAL) -> None:
        self._api, self._terms = api, terms
        self._marks = Marks()
        self._over = threading.Event()
        self._pulse_at: float | None = None
        self._told_alive_at = 0.0
        subjects: tuple[Subject, ...] = (
            OurPods(installation=installation, marks=self._marks),
            Nodes(marks=self._marks),
            OthersPods(installation=installation, marks=self._marks),
        )
        self._followers = tuple(
            Follower(api, subject, stopping=self._over, terms=terms) for subject in subjects
        )

    def state(self) -> tuple[Following, ...]:
        """How each follower has done so far."""
        return tuple(follower.state() for follower in self._followers)

    def watch(
        self,
        *,
        launches_changed: Callable[[frozenset[str]], None],
        nodes_changed: Callable[[], None],
        alive: Callable[[], None],
        stopping: threading.Event,
    ) -> None:
        """See ``controlplane.ports.clusters.Watchable``. All three are called in the caller's thread."""
        work = (*(follower.run for follower in self._followers), self._keep_pulse)
        threads = [threading.Thread(target=each, name="watch", daemon=True) for each in work]
        for thread in threads:
            thread.start()
        try:
            while not stopping.is_set():
                self._tell_alive(alive)
                if self._marks.some.wait(_LOOK_EVERY) and not stopping.is_set():
                    told = self._tell(launches_changed, nodes_changed)
                    stopping.wait(_TELL_EVERY if told else _TELL_AGAIN)
        finally:
            self._over.set()
            for follower in self._followers:
                follower.interrupt()
            limit = time.monotonic() + _END_WITHIN
            for thread in threads:
                thread.join(max(0.0, limit - time.monotonic()))

    def _tell(
        self,
        launches_changed: Callable[[frozenset[str]], None],
        nodes_changed: Callable[[], None],
    ) -> bool:
        """Whether it was heard; what was not is told again."""
        launches, nodes = self._marks.take()
        try:
            if launches:
                launches_changed(launches)
                launches = frozenset()
            if nodes:
                nodes_changed()
        except Exception:
            log.exception("news of a cluster were not taken; they are told again")
            self._marks.launches(launches)
            if nodes:
                self._marks.nodes()
            return False
        return True

    def _tell_alive(self, alive: Callable[[], None]) -> None:
        heard, now = self._heard_at(), time.monotonic()
        if (
            heard is None
            or heard <= self._told_alive_at
            or now < self._told_alive_at + _ALIVE_EVERY
        ):
            return
        self._told_alive_at = now
        try:
            alive()
        except Exception:
            log.exception("a sign of life of a cluster was not taken")

    def _heard_at(self) -> float | None:
        signs = [self._pulse_at, *(follower.heard_at for follower in self._followers)]
        return max((sign for sign in signs if sign is not None), default=None)

    def _keep_pulse(self) -> None:
        """Ask for a sign of life when there was none for a while.

        Where one comes after a failure, old connections may be dead without knowing it: new ones are made.
        """
        began, failed = time.monotonic(), False
        while not self._over.is_set():
            quiet = time.monotonic() - (self._heard_at() or began)
            if quiet < self._terms.pulse:
                self._over.wait(self._terms.pulse - quiet)
            elif self._answers():
                self._pulse_at = time.monotonic()
                if failed:
                    for follower in self._followers:
                        follower.renew()
                failed = False
            else:
                failed = True
                self._over.wait(self._terms.pulse / 4)

    def _answers(self) -> bool:
        try:
            self._api.open("/version", read_within=self._terms.answer).close()
        except ApiRefused as refusal:
            # Whoever may not see the version is still spoken to; whose credential is not known is not.
            return refusal.status != HTTPStatus.UNAUTHORIZED
        except (ClusterError, OSError) as error:
            log.warning(
                "a cluster shows no sign of life",
                extra={"server": self._api.access.server, "error": str(error)},
            )
            return False
        return True
