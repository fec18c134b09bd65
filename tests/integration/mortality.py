"""Workers that die between any two steps, as by ``kill -9``.

A step is a statement to the database, or a call of the cluster or of the artifact store, which can die
before it begins or after it took effect. The dead do nothing more: no ``finally``, no release, no message.
PostgreSQL rolls back what they had not committed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import connection
from django.db.models import Model
from django.utils import timezone

from apps.jobs.models import Attempt
from apps.serving.models import Deployment, Replica
from apps.workflows.models import Pipeline
from controlplane.persistence.models import Lease

#: Django undoes savepoints by statements; a dead worker's server does that without being asked.
_UNDONE_BY_THE_SERVER = ("ROLLBACK TO SAVEPOINT", "RELEASE SAVEPOINT")


#: A worker dies at one step in so many; `make test-full` lets it die at each, which takes many minutes.
EVERY = int(os.environ.get("NINEFOLD_DEATHS_EVERY", "17"))


class Killed(BaseException):
    """Not an ``Exception``: nothing in the product may catch it and go on."""


class Worker:
    """Counts steps and dies at the one it is told to."""

    def __init__(self) -> None:
        self.steps = 0
        self.dies_at: int | None = None
        self.dead = False
        #: Others use the same adapters between its turns.
        self.at_work = False
        #: What it was about to do when it died.
        self.last_step = ""

    @contextmanager
    def working(self) -> Iterator[None]:
        self.at_work = True
        try:
            with connection.execute_wrapper(self._execute):
                yield
        finally:
            self.at_work = False

    def step(self, what: str) -> None:
        """:raises Killed: if this is the step, or it came before."""
        if not self.at_work:
            return
        if self.dead:
            raise Killed
        if self.steps == self.dies_at:
            self.dead = True
            self.last_step = what
            raise Killed
        self.steps += 1

    def _execute(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        if self.dead and sql.startswith(_UNDONE_BY_THE_SERVER):
            return None
        self.step(f"database: {sql[:200]}")
        return execute(sql, params, many, context)


class Mortal:
    """An adapter as a mortal worker calls it."""

    def __init__(self, adapter: object, worker: Worker) -> None:
        self._adapter = adapter
        self._worker = worker

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._adapter, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self._worker.step(f"before {name}")
            result = method(*args, **kwargs)
            try:
                self._worker.step(f"after {name}")
            except Killed:
                # Its files close with the process.
                if hasattr(result, "close"):
                    result.close()
                raise
            return result

        return call


def bury(worker: Worker) -> None:
    """What time does after a death: the connection is gone and the leases run out."""
    worker.dead = False
    worker.dies_at = None
    connection.close()
    past = timezone.now() - timedelta(seconds=1)
    leased: tuple[type[Model], ...] = (Attempt, Deployment, Replica, Pipeline)
    for model in leased:
        model._default_manager.exclude(leased_until=None).update(leased_until=past)
    Lease.objects.update(expires_at=past)


def live(worker: Worker, *, turn: Callable[[], None], until: Callable[[], bool]) -> None:
    """Turn the loops until the end, through a death if one is planned.

    :raises AssertionError: if the end does not come.
    """
    for _ in range(60):
        try:
            with worker.working():
                turn()
        except Killed:
            bury(worker)
        if until():
            return
    raise AssertionError(f"no end after a death at: {worker.last_step}")
