"""All replicas of a Launch start, or none does.

Each supervisor says that it is ready and starts its process only when all have said so. A replica
that cannot start takes the others down with it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from controlplane.adapters.clusters.local.folders import LaunchFolder, ReplicaFolder, try_lock
from controlplane.adapters.clusters.local.preparation import NotPrepared
from controlplane.adapters.clusters.local.states import ReplicaState
from controlplane.ports.clusters import ExitCause
from controlplane.ports.launches import Launch

#: Seconds that a supervisor may take from the launch to its first state.
APPEARS_WITHIN = 30.0


class Gang:
    """The other replicas of a Launch, as one of them sees them."""

    def __init__(self, launch: Launch, *, folder: LaunchFolder, besides: tuple[str, int]) -> None:
        self._own = folder.replica(*besides)
        self._others = {
            f"{role.name}-{index}": folder.replica(role.name, index)
            for role in launch.roles
            for index in range(len(role.placements))
            if (role.name, index) != besides
        }
        self._since = time.monotonic()

    def wait(self, report: Callable[[str | None], None]) -> None:
        """Say that this replica is ready and return once all are.

        :raises NotPrepared: if another one cannot start any more.
        """
        (self._own.path / "ready").touch()
        told = False
        while absent := [name for name, other in self._others.items() if not _ready(other)]:
            broken = self.broken() or self._vanished(absent)
            if broken:
                raise NotPrepared(broken)
            report(None if told else f"ready; waiting for {', '.join(absent)}")
            told = True
            time.sleep(0.05)

    def broken(self) -> str:
        """A sentence on a replica that could not be started, or nothing."""
        for name, other in self._others.items():
            state = ReplicaState.read(other)
            if state is None or not state.ended:
                continue
            if state.cause is ExitCause.NOT_PREPARED or not _ready(other):
                return f"not started, because {name} could not be: {state.message}"
        return ""

    def _vanished(self, names: list[str]) -> str:
        for name in names:
            other = self._others[name]
            if ReplicaState.read(other) is None:
                if time.monotonic() - self._since > APPEARS_WITHIN:
                    return f"not started, because {name} was never launched"
            # Once it has written a state, its supervisor holds the lock until its end.
            elif (lock := try_lock(other.lock)) is not None:
                os.close(lock)
                if not _ready(other) and not self.broken():
                    return f"not started, because the supervisor of {name} is gone"
        return ""


def _ready(replica: ReplicaFolder) -> bool:
    return (replica.path / "ready").exists()
