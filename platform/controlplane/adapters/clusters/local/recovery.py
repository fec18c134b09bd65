"""What became of a replica whose supervisor did not live to say it.

The supervisor's lock is the judge: it is free exactly when no supervisor lives. Before such a replica
is called lost, everything that is left of it is killed; until that has succeeded it still counts as
running, because its cards are not free.
"""

from __future__ import annotations

import os
import time

from controlplane.adapters.clusters.local import processes
from controlplane.adapters.clusters.local.folders import ReplicaFolder, try_lock
from controlplane.adapters.clusters.local.gangs import APPEARS_WITHIN
from controlplane.adapters.clusters.local.job_processes import INSTANCE_VARIABLE
from controlplane.adapters.clusters.local.processes import ProcessIdentity
from controlplane.adapters.clusters.local.records import LaunchRecord
from controlplane.adapters.clusters.local.states import ReplicaState
from controlplane.ports.clusters import Phase

#: Seconds that a call may spend on killing what is left; the next call goes on.
_KILL_WITHIN = 3.0


def settle(record: LaunchRecord, *, replica: ReplicaFolder) -> ReplicaState | None:
    """The replica's state, after writing LOST for one whose supervisor is gone.

    None as long as its supervisor may still come up.
    """
    state = ReplicaState.read(replica)
    if state is not None and state.ended:
        return state
    if state is None and time.time() - replica.path.stat().st_ctime < APPEARS_WITHIN:
        return None
    lock = try_lock(replica.lock)
    if lock is None:
        return state
    try:
        # Between the reading above and the lock, the supervisor may have written its last state.
        state = ReplicaState.read(replica)
        if state is not None and state.ended:
            return state
        return _bury(record, replica=replica, state=state)
    finally:
        os.close(lock)


def _bury(
    record: LaunchRecord, *, replica: ReplicaFolder, state: ReplicaState | None
) -> ReplicaState:
    boot = processes.boot_id()
    if state is None:
        state = ReplicaState(
            phase=Phase.PREPARING, boot=boot, supervisor=ProcessIdentity(pid=0, started=0)
        )
        message = "its supervisor never came up"
    elif state.boot != boot:
        message = "the machine was restarted while it ran"
    elif processes.kill_until_gone(
        lambda: _left(record, replica=replica, state=state), within=_KILL_WITHIN
    ):
        message = "its supervisor was killed; what it left running has been killed too"
    else:
        return state
    lost = state.lost(message=message, at=time.time())
    lost.write(replica)
    return lost


def _left(
    record: LaunchRecord, *, replica: ReplicaFolder, state: ReplicaState
) -> list[ProcessIdentity]:
    """Living processes of this replica; where replicas share an account, those of its siblings not."""
    marked = processes.with_variable(INSTANCE_VARIABLE, f"{record.instance}/{replica.path.name}")
    found = {*marked, *(process for process in state.processes if process.alive())}
    alone = sum(len(role.placements) for role in record.launch.roles) == 1
    if record.account is not None and alone:
        found.update(processes.of_account(record.account))
    return sorted(found, key=lambda process: process.pid)
