"""The supervisor of one replica: ``python -m controlplane.adapters.clusters.local.supervisor FOLDER ROLE INDEX``.

It leaves the process that started it at once, so that it and the job outlive the control plane::

    control plane ──▶ starter ──fork──▶ supervisor (session of its own, subreaper)
                        │ exits 0 once       ├─ prepares: environment, inputs, files
                        │ state.json exists  └─ job process (session of its own) ─▶ …

The lock in the replica's folder is held as long as the supervisor lives, however it dies. Standard
library only, and no Django: it has to start fast and to stay small.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from controlplane.adapters.clusters.local import (
    engine_environments,
    job_processes,
    launch_preparation,
)
from controlplane.adapters.clusters.local.job_processes import (
    placeholder_values,
)
from controlplane.adapters.clusters.local.launch_folders import (
    LocalClusterFolder,
    read_json,
)
from controlplane.adapters.clusters.local.launch_preparation import GangPeers
from controlplane.adapters.clusters.local.launch_records import LocalLaunchRecord, LocalReplicaState
from controlplane.adapters.clusters.local.process_runs import (
    NoPortFree,
    PortLease,
    ProbeThread,
    ProcessExit,
    ProcessRun,
    RunCallbacks,
)
from controlplane.adapters.clusters.local.replica_logs import BoundedLog
from controlplane.domain.common.reasons import Reason
from controlplane.ports.clusters import ExitCause, ReplicaPhase
from controlplane.ports.launches import UNREADY
from process_supervision.files import try_lock
from process_supervision.process_guard import set_process_option
from process_supervision.processes import (
    ProcessIdentity,
    bind_error,
    boot_id,
    seconds_since_boot,
)

_PR_SET_CHILD_SUBREAPER = 36
_PORT_ATTEMPTS = 3
#: Seconds between two writes of a state of which only the measurements changed.
_MEASURED_EVERY = 2.0
_RESERVE = 64 * 1024
_LAST_WRITE_WITHIN = 600.0


class ReplicaStopRequested(Exception):
    """A stop came before the process was started."""


class ReplicaSupervisor:
    """Brings one replica from PREPARING to EXITED and writes down every step."""

    def __init__(
        self, record: LocalLaunchRecord, *, home: LocalClusterFolder, role: str, index: int
    ) -> None:
        self._record = record
        self._home = home
        self._folder = home.launch(record.launch.name)
        self._own = self._folder.replica(role, index)
        self._role = next(each for each in record.launch.roles if each.name == role)
        self._index = index
        self._gang = GangPeers(record.launch, folder=self._folder, besides=(role, index))
        self._log = BoundedLog(
            self._own.log,
            limit=record.log_limit,
            secrets=record.launch.secrets.values(),
        )
        self._terminated_at: float | None = None
        self._unwritten = False
        self._written_at = 0.0
        self._state = LocalReplicaState(
            phase=ReplicaPhase.PREPARING,
            message=Reason("launch.state.starting", "starting"),
            boot=boot_id(),
            supervisor=ProcessIdentity.of_this_process(),
        )

    def announce(self) -> None:
        """The first state, and the blocks that let the last one be written to a full disk.

        :raises OSError: if there is no room for them.
        """
        with self._own.reserve.open("wb") as stream:
            os.posix_fallocate(stream.fileno(), 0, _RESERVE)
        self._state.write(self._own)
        signal.signal(signal.SIGTERM, self._on_terminate)

    def run(self) -> None:
        try:
            ending = self._prepare_and_run()
        except ReplicaStopRequested:
            ending = ProcessExit(
                cause=ExitCause.STOPPED,
                message=Reason("launch.stop.before_start", "stopped before the workload started"),
            )
        except (
            launch_preparation.LaunchPreparationFailed,
            engine_environments.EnvironmentBuildFailed,
            NoPortFree,
            OSError,
        ) as failure:
            ending = ProcessExit(cause=ExitCause.NOT_PREPARED, message=str(failure))
            self._log.write_message(f"could not be started: {failure}")
        self._record_exit(ending)

    def _on_terminate(self, _number: int, _frame: object) -> None:
        # The machine shuts down, or an operator is polite: the job gets its usual grace.
        if self._terminated_at is None:
            self._terminated_at = seconds_since_boot() + self._record.launch.grace.total_seconds()

    def _prepare_and_run(self) -> ProcessExit:
        record = self._record
        runtime = engine_environments.ensure_runtime_package(engines=self._home.engines)
        python = Path(record.python)
        if record.launch.engine is not None:
            python = engine_environments.ensure_environment(
                record.launch.engine,
                engines=self._home.engines,
                python=python,
                report=self._report_progress,
            )
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            ports = PortLease.pick(
                self._role.ports,
                folder=self._home.ports,
                first=record.ports_from,
                last=record.ports_to,
            )
            try:
                run, ending = self._run_once(python=python, runtime=runtime, ports=ports)
                again = attempt < _PORT_ATTEMPTS and self._port_was_in_use(run, ending, ports=ports)
            finally:
                ports.release()
            if not again:
                break
            self._log.write_message("another program took its port: starting again with a new one")
        return ending

    def _run_once(
        self, *, python: Path, runtime: Path, ports: PortLease
    ) -> tuple[ProcessRun, ProcessExit]:
        record, role = self._record, self._role
        values = placeholder_values(
            work=str(self._folder.work),
            inputs=str(self._folder.inputs),
            python=str(python),
            index=self._index,
            ports=ports.numbers,
        )
        launch_preparation.prepare_launch(
            record, home=self._home, values=values, report=self._report_progress
        )
        self._gang.wait(self._report_progress)
        process = job_processes.start_job(
            record,
            role,
            index=self._index,
            folder=self._folder,
            environment=job_processes.job_environment(
                record,
                role,
                index=self._index,
                folder=self._folder,
                runtime=runtime,
                values=values,
            ),
            values=values,
        )
        probe = None
        if role.probe is not None:
            probe = ProbeThread(role.probe, port=ports.numbers[role.probe.port])
        first = ProcessIdentity.of(process.pid)
        self._update_state(
            phase=ReplicaPhase.RUNNING if probe is None else ReplicaPhase.STARTING,
            message=Reason("launch.state.running", "running")
            if probe is None
            else Reason("launch.probe.waiting", "waiting for the first successful probe"),
            started_at=self._state.started_at or time.time(),
            ports=dict(ports.numbers),
            processes=() if first is None else (first,),
        )
        within = record.launch.run_within
        run = ProcessRun(
            process,
            launch=record.launch,
            role=role,
            log=self._log,
            callbacks=RunCallbacks(
                stop_deadline=self._stop_deadline,
                broken_gang=self._gang.broken,
                measured=self._record_measurement,
                probed=self._record_probe,
            ),
            deadline=None if within is None else seconds_since_boot() + within.total_seconds(),
            probe=probe,
        )
        return run, run.watch()

    def _port_was_in_use(self, run: ProcessRun, ending: ProcessExit, *, ports: PortLease) -> bool:
        """Whether it failed early while another process listens on a port of ours.

        Files that name the port cannot be written again: the job may have put links in their place.
        """
        fixed = any("{port:" in text for text in self._record.launch.files.values())
        return (
            ending.cause is ExitCause.FAILED
            and not run.answered
            and not fixed
            and any(bind_error(port) for port in ports.numbers.values())
        )

    def _report_progress(self, message: str | None) -> None:
        if message:
            self._log.write_message(message)
            self._update_state(message=message)
        if self._stop_deadline() is not None:
            raise ReplicaStopRequested

    def _stop_deadline(self) -> float | None:
        if self._unwritten:
            self._update_state()
        request = read_json(self._folder.stop) if self._folder.stop.exists() else None
        deadlines = [
            deadline
            for deadline in (self._terminated_at, None if request is None else request["deadline"])
            if deadline is not None
        ]
        return min(deadlines, default=None)

    def _record_probe(self, phase: ReplicaPhase) -> None:
        running = phase is ReplicaPhase.RUNNING
        message = Reason("launch.state.running", "running") if running else UNREADY
        self._update_state(phase=phase, message=message)

    def _record_measurement(self, memory: int, group: tuple[ProcessIdentity, ...]) -> None:
        new = set(group) != set(self._state.processes)
        if new or seconds_since_boot() - self._written_at >= _MEASURED_EVERY:
            self._update_state(memory=memory, processes=group)

    def _update_state(self, **changes: Any) -> None:
        self._state = replace(self._state, **changes)
        try:
            self._state.write(self._own)
            self._unwritten, self._written_at = False, seconds_since_boot()
        except OSError:
            # Nothing depends on this one: the next tick tries again, and the last has a reserve.
            self._unwritten = True

    def _record_exit(self, ending: ProcessExit) -> None:
        # On a full disk this frees space for the last lines and the last state.
        self._own.reserve.unlink(missing_ok=True)
        self._log.close()
        self._update_state(
            phase=ReplicaPhase.EXITED,
            message=ending.message,
            exit_code=ending.exit_code,
            cause=ending.cause,
            ended_at=time.time(),
            memory=0,
            processes=(),
        )
        deadline = seconds_since_boot() + _LAST_WRITE_WITHIN
        while self._unwritten and seconds_since_boot() < deadline:
            time.sleep(1)
            self._update_state()


def main(arguments: Sequence[str]) -> int:
    """Start the supervisor and return 0 once its first state is written, or another supervisor runs it."""
    folder, role, index = Path(arguments[0]), arguments[1], int(arguments[2])
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        return 0 if os.read(reading, 1) else 1
    os.close(reading)
    status = 1
    try:
        _supervise_replica(folder, role=role, index=index, ready=writing)
        status = 0
    finally:
        if status:
            traceback.print_exc()
            sys.stderr.flush()
        # The parent's stack must not be unwound a second time in this copy of it.
        os._exit(status)


def _supervise_replica(folder: Path, *, role: str, index: int, ready: int) -> None:
    _detach_from_parent()
    home = LocalClusterFolder(folder.parent.parent)
    launch = home.launch(folder.name)
    lock = try_lock(launch.replica(role, index).lock)
    data = read_json(launch.record)
    if lock is None or data is None or launch.replica(role, index).state.exists():
        os.write(ready, b"1")
        return
    supervisor = ReplicaSupervisor(
        LocalLaunchRecord.from_json(data), home=home, role=role, index=index
    )
    supervisor.announce()
    os.write(ready, b"1")
    os.close(ready)
    supervisor.run()


def _detach_from_parent() -> None:
    os.setsid()
    os.umask(0o022)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in (signal.SIGINT, signal.SIGHUP):
        # A handler and not SIG_IGN: what is ignored here would stay ignored in the job.
        signal.signal(number, lambda _number, _frame: None)
    with suppress(OSError):
        os.chdir("/")
    set_process_option(_PR_SET_CHILD_SUBREAPER, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
