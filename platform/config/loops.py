"""Each turn of a loop is noted in one place, for all loops alike, by Celery's own signals.

The same signals give the lines that a task logs its name and id.
"""

from __future__ import annotations

import time
from typing import Any

from celery import Task
from celery.signals import task_postrun, task_prerun, worker_init

from controlplane.persistence import loops
from controlplane.web import logs


class TurnKeeper:
    """Hears of every task, and notes those that the beat calls for."""

    def __init__(self) -> None:
        self._loops = frozenset(loops.intervals())
        self._began: dict[str, float] = {}

    def connect(self) -> None:
        """Begin to hear.

        Celery's own handlers close the database's connection before and after each task. Heard after the
        one and before the other, the notes share the task's connection.
        """
        task_postrun.connect(self.ended, weak=False)
        worker_init.connect(self._connect_late, weak=False)

    def _connect_late(self, **_: Any) -> None:
        task_prerun.connect(self.started, weak=False)

    def started(self, *, task_id: str, task: Task[..., Any], **_: Any) -> None:
        logs.task_begins(name=task.name, task_id=task_id)
        if task.name in self._loops:
            self._began[task_id] = time.monotonic()
            loops.turn_started(task.name)

    def ended(self, *, task_id: str, task: Task[..., Any], retval: object = None, **_: Any) -> None:
        began = self._began.pop(task_id, None)
        if began is not None:
            failed = isinstance(retval, BaseException)
            loops.turn_ended(
                task.name,
                seconds=time.monotonic() - began,
                error=f"{type(retval).__name__}: {retval}" if failed else None,
                handled=retval if isinstance(retval, int) else None,
            )
        logs.task_ends()
