"""Record every reconcile run of every controller, from the signals of Celery.

The same signals add the name and id of the task to log lines.
"""

from __future__ import annotations

import time
from typing import Any

from celery import Task
from celery.signals import task_postrun, task_prerun, worker_init

from controlplane.persistence import reconcile_runs
from controlplane.web import logs


class ReconcileRunRecorder:
    """Records the start and end of tasks in the beat schedule."""

    def __init__(self) -> None:
        self._controllers = frozenset(reconcile_runs.controller_intervals())
        self._began: dict[str, float] = {}

    def connect(self) -> None:
        """Connect the signal handlers.

        Celery's own handlers close the database connection before and after each task. Connected between
        them, the recorder shares the connection of the task.
        """
        task_postrun.connect(self.ended, weak=False)
        worker_init.connect(self._connect_late, weak=False)

    def _connect_late(self, **_: Any) -> None:
        task_prerun.connect(self.started, weak=False)

    def started(self, *, task_id: str, task: Task[..., Any], **_: Any) -> None:
        logs.set_task_context(name=task.name, task_id=task_id)
        if task.name in self._controllers:
            self._began[task_id] = time.monotonic()
            reconcile_runs.run_started(task.name)

    def ended(self, *, task_id: str, task: Task[..., Any], retval: object = None, **_: Any) -> None:
        began = self._began.pop(task_id, None)
        if began is not None:
            failed = isinstance(retval, BaseException)
            reconcile_runs.run_ended(
                task.name,
                seconds=time.monotonic() - began,
                error=f"{type(retval).__name__}: {retval}" if failed else None,
                handled=retval if isinstance(retval, int) else None,
            )
        logs.clear_task_context()
