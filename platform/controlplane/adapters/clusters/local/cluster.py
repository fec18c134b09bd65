"""The local cluster adapter: reads and writes launch folders, starts supervisors and recovers lost replicas.

The supervisor's lock decides whether it is alive: it is free exactly when no supervisor lives. Before a replica
without supervisor is reported lost, everything that is left of it is killed; until that has succeeded it still
counts as running, because its cards are not free.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from controlplane.adapters.clusters.launch_validation import NAME_PATTERN, check_launch
from controlplane.adapters.clusters.local import job_accounts
from controlplane.adapters.clusters.local.engine_environments import installer_variables
from controlplane.adapters.clusters.local.job_processes import INSTANCE_VARIABLE
from controlplane.adapters.clusters.local.launch_folders import (
    LaunchFolder,
    LocalClusterFolder,
    ReplicaFolder,
    read_json,
    write_json,
)
from controlplane.adapters.clusters.local.launch_preparation import APPEARS_WITHIN
from controlplane.adapters.clusters.local.launch_records import (
    LocalLaunchRecord,
    LocalReplicaState,
    ProcessIsolation,
)
from controlplane.adapters.clusters.local.replica_logs import read_chunk
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.resources import GIB, MIB, Bytes, Millicpu, Resources
from controlplane.ports import adapter_registry
from controlplane.ports.clusters import (
    ClusterError,
    ClusterUnavailable,
    LaunchRefused,
    LogChunk,
    ObservedCard,
    ObservedLaunch,
    ObservedNode,
    ObservedReplica,
    ReplicaEndpoint,
    ReplicaPhase,
)
from controlplane.ports.launches import Launch
from process_supervision import processes
from process_supervision.files import last_lines, try_lock
from process_supervision.processes import ProcessIdentity, seconds_since_boot

#: The secret of a Launch that its engine demands from callers.
ENGINE_KEY = "NINEFOLD_ENGINE_KEY"
_STARTS_WITHIN = 60.0
_WITHDRAWN_WITHIN = 10.0
_SUPERVISOR = "controlplane.adapters.clusters.local.supervisor"


class LocalCluster:
    """Implements ``controlplane.ports.clusters.ClusterAdapter`` on this machine.

    ``cards`` is how many cards of ``chip`` to show, 0 for one a core; ``python`` is what jobs run on, empty
    to find one that their accounts can execute; ``artifacts`` are the options of the artifact store,
    by default the folder ``artifacts`` in ``home``. Inputs with presigned URLs are downloaded into the weight
    cache ``home/cache``, of at most ``cache_limit`` bytes.
    """

    runs_images = False
    downloads_inputs = True

    def __init__(
        self,
        home: str | Path,
        *,
        python: str = "",
        cards: int = 0,
        node: str = "",
        chip: str = "cpu",
        log_limit: int = 64 * MIB,
        first_account: int = job_accounts.FIRST_ACCOUNT,
        last_account: int = job_accounts.LAST_ACCOUNT,
        first_port: int = 20_000,
        last_port: int = 31_999,
        artifacts_kind: str = "filesystem",
        artifacts: Mapping[str, Any] | None = None,
        cache_limit: int = 100 * GIB,
    ) -> None:
        self._home = LocalClusterFolder(Path(home).absolute())
        self._home.create()
        self._python = python
        self._cores = len(os.sched_getaffinity(0))
        self._cards = cards or self._cores
        self._node = node or _node_name()
        self._chip = chip
        self._log_limit = log_limit
        self._accounts = (first_account, last_account)
        self._port_range = (first_port, last_port)
        self._artifacts_kind = artifacts_kind
        self._cache_limit = cache_limit
        self._artifacts = dict(artifacts or {"root": str(self._home.path / "artifacts")})

    @cached_property
    def _isolation_policy(self) -> job_accounts.IsolationPolicy:
        first, last = self._accounts
        return job_accounts.isolation_policy(home=self._home.jobs, first=first, last=last)

    @cached_property
    def _job_interpreter(self) -> str:
        """:raises ClusterUnavailable: if no Python is here that jobs could run on."""
        by_others = self._isolation_policy.separation is not ProcessIsolation.NONE
        try:
            return str(job_accounts.find_interpreter(preferred=self._python, by_others=by_others))
        except job_accounts.InterpreterNotFound as failure:
            raise ClusterUnavailable(str(failure)) from failure

    def inventory(self) -> tuple[ObservedNode, ...]:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return (
            ObservedNode(
                name=self._node,
                cards=tuple(
                    ObservedCard(index=index, chip=self._chip) for index in range(self._cards)
                ),
                capacity=Resources(cpu=Millicpu(self._cores * 1000), memory=Bytes(memory)),
                labels={"hostname": socket.gethostname()},
            ),
        )

    def isolation(self) -> str:
        return self._isolation_policy.summary

    @property
    def weight_cache_limit(self) -> Bytes | None:
        return Bytes(self._cache_limit)

    def launch(self, launch: Launch) -> None:
        check_launch(launch, nodes=self.inventory())
        if launch.image and launch.engine is None:
            raise LaunchRefused(
                "launch.image.not_supported",
                "this cluster does not run containers, and the launch requires the image "
                "{image}; choose an engine with a software environment, or a cluster "
                "that runs containers",
                image=launch.image,
            )
        folder = self._home.launch(launch.name)
        if not folder.path.is_dir():
            self._check_continued(launch)
            self._create_launch_folder(launch)
        # Also what an earlier call left undone: the supervisors' locks let each start once only.
        for replica, role, index in _replica_folders(launch, folder=folder):
            if not replica.state.exists():
                try:
                    self._start_supervisor(folder, replica=replica, role=role, index=index)
                except ClusterUnavailable:
                    self._discard_incomplete_launch(launch)
                    raise

    def observe(self, names: Collection[str]) -> Mapping[str, ObservedLaunch]:
        observed = {}
        for name in names:
            record = self._find_record(name)
            if record is not None:
                with suppress(FileNotFoundError):
                    observed[name] = self._observe_launch(record)
        return observed

    def names(self) -> frozenset[str]:
        return frozenset(
            entry.name for entry in self._home.jobs.iterdir() if NAME_PATTERN.fullmatch(entry.name)
        )

    def stop(self, name: str, *, grace: timedelta) -> None:
        if not NAME_PATTERN.fullmatch(name):
            return
        path = self._home.launch(name).stop
        request = path.with_name(f".stop.{secrets.token_hex(4)}")
        with suppress(FileNotFoundError):
            write_json(
                request, {"deadline": seconds_since_boot() + max(0.0, grace.total_seconds())}
            )
            # A link fails where a rename would replace: the first deadline holds.
            with suppress(FileExistsError):
                os.link(request, path)
            request.unlink()

    def remove(self, name: str) -> None:
        observed = self.observe([name]).get(name)
        if observed is None:
            return
        if not observed.ended:
            raise ClusterError(
                "launch.removal.not_ended",
                "the launch {launch} has not ended: stop it before removing it",
                launch=name,
            )
        self._delete_folder(self._home.launch(name))

    def disk_usage_by_launch(self, names: Collection[str]) -> Mapping[str, Bytes]:
        folders = {name: self._home.launch(name) for name in names}
        return {
            name: Bytes(folder.footprint())
            for name, folder in folders.items()
            if folder.path.is_dir()
        }

    def log(self, name: str, *, role: str, index: int, offset: int, limit: int) -> LogChunk:
        replica = self._find_replica(name, role=role, index=index)
        if replica is None:
            return LogChunk(content=b"", next_offset=max(0, offset), complete=True)
        # Before the text: what is written in between then belongs to a later chunk.
        state = LocalReplicaState.read(replica)
        ended = state is not None and state.ended
        return read_chunk(replica.log, offset=offset, limit=limit, ended=ended)

    def endpoint(self, name: str, *, role: str, index: int, port: str) -> ReplicaEndpoint | None:
        record, replica = self._find_record(name), self._find_replica(name, role=role, index=index)
        state = None if replica is None else LocalReplicaState.read(replica)
        if record is None or state is None or port not in state.ports:
            return None
        return ReplicaEndpoint(
            url=f"http://127.0.0.1:{state.ports[port]}",
            credential=record.launch.secrets.get(ENGINE_KEY, ""),
        )

    def _find_record(self, name: str) -> LocalLaunchRecord | None:
        if not NAME_PATTERN.fullmatch(name):
            return None
        data = read_json(self._home.launch(name).record)
        return None if data is None else LocalLaunchRecord.from_json(data)

    def _find_replica(self, name: str, *, role: str, index: int) -> ReplicaFolder | None:
        if not NAME_PATTERN.fullmatch(name) or not NAME_PATTERN.fullmatch(role):
            return None
        replica = self._home.launch(name).replica(role, index)
        return replica if replica.path.is_dir() else None

    def _observe_launch(self, record: LocalLaunchRecord) -> ObservedLaunch:
        launch = record.launch
        observed = []
        for replica, role, index in _replica_folders(launch, folder=self._home.launch(launch.name)):
            state = record_replica_end(record, replica=replica)
            observed.append(
                ObservedReplica(
                    role=role,
                    index=index,
                    phase=ReplicaPhase.PREPARING,
                    message=Reason("launch.state.starting", "starting"),
                )
                if state is None
                else state.observed(role=role, index=index)
            )
        return ObservedLaunch(name=launch.name, replicas=tuple(observed), labels=launch.labels)

    def _check_continued(self, launch: Launch) -> None:
        if launch.continues is None:
            return
        earlier = self.observe([launch.continues]).get(launch.continues)
        if earlier is not None and not earlier.ended:
            raise LaunchRefused(
                "launch.continuation.not_ended",
                "{launch} continues {previous}, which has not ended: stop it first",
                launch=launch.name,
                previous=launch.continues,
            )

    @contextmanager
    def _reserve_account(self, name: str) -> Iterator[int | None]:
        if self._isolation_policy.separation is ProcessIsolation.NONE:
            yield None
            return
        first, last = self._accounts
        with job_accounts.reserve_job_account(
            name, home=self._home, first=first, last=last
        ) as account:
            yield account

    def _create_launch_folder(self, launch: Launch) -> None:
        """Make the Launch's folder, whole or not at all; another caller may win."""
        staging = LaunchFolder(self._home.jobs / f".new-{secrets.token_hex(8)}")
        try:
            with self._reserve_account(launch.name) as account:
                staging.path.mkdir(mode=0o700)
                for replica, _, _ in _replica_folders(launch, folder=staging):
                    replica.path.mkdir(mode=0o700, parents=True)
                write_json(staging.record, self._new_record(launch, account=account).to_json())
                if account is not None:
                    os.chown(staging.path, 0, account)
                staging.path.chmod(0o710)
                staging.path.rename(self._home.launch(launch.name).path)
        except OSError as failure:
            if not self._home.launch(launch.name).path.is_dir():
                raise ClusterUnavailable(
                    "launch.folder.not_written",
                    "{launch} could not be written to disk: {error}",
                    launch=launch.name,
                    error=failure.strerror,
                ) from failure
        finally:
            shutil.rmtree(staging.path, ignore_errors=True)

    def _new_record(self, launch: Launch, *, account: int | None) -> LocalLaunchRecord:
        return LocalLaunchRecord(
            launch=launch,
            instance=secrets.token_hex(16),
            separation=self._isolation_policy.separation,
            account=account,
            python=self._job_interpreter,
            log_limit=self._log_limit,
            ports_from=self._port_range[0],
            ports_to=self._port_range[1],
            artifacts_kind=self._artifacts_kind,
            artifacts_options=self._artifacts,
            hidden_devices=adapter_registry.variables_that_hide_devices([self._chip]),
            cache_limit=self._cache_limit,
        )

    def _start_supervisor(
        self, folder: LaunchFolder, *, replica: ReplicaFolder, role: str, index: int
    ) -> None:
        """Start a supervisor and return once it has written its first state."""
        record = self._find_record(folder.path.name)
        if record is None:
            return
        source = Path(__file__).parents[4]
        variables = installer_variables(os.environ) | {
            "PYTHONPATH": str(source),
            INSTANCE_VARIABLE: f"{record.instance}/{replica.path.name}",
        }
        command = [sys.executable, "-P", "-m", _SUPERVISOR, str(folder.path), role, str(index)]
        try:
            with replica.supervisor_log.open("ab") as errors:
                starter = processes.start_in_session(command, output=errors, env=variables)
                code = starter.wait(_STARTS_WITHIN)
        except (OSError, subprocess.TimeoutExpired) as failure:
            raise ClusterUnavailable(
                "launch.supervisor.start_error",
                "the supervisor of {role}-{index} could not be started: {error}",
                role=role,
                index=index,
                error=str(failure),
            ) from failure
        if code != 0:
            raise ClusterUnavailable(
                "launch.supervisor.start_failed",
                "the supervisor of {role}-{index} did not start: {output}",
                role=role,
                index=index,
                output="".join(last_lines(replica.supervisor_log, lines=1)),
            )

    def _discard_incomplete_launch(self, launch: Launch) -> None:
        """Leave nothing of a Launch of which one supervisor could not be started."""
        self.stop(launch.name, grace=timedelta(0))
        folder, deadline = self._home.launch(launch.name), time.monotonic() + _WITHDRAWN_WITHIN
        started = [
            each for each, _, _ in _replica_folders(launch, folder=folder) if each.state.exists()
        ]
        while time.monotonic() < deadline:
            states = [LocalReplicaState.read(replica) for replica in started]
            if all(state is None or state.ended for state in states):
                # Only now: the request to stop lies in the folder.
                self._delete_folder(folder)
                return
            time.sleep(0.05)

    def _delete_folder(self, folder: LaunchFolder) -> None:
        """Delete the folder and give its account back; the name is free as soon as it is renamed."""
        record = self._find_record(folder.path.name)
        rubbish = self._home.jobs / f".old-{secrets.token_hex(8)}"
        with suppress(FileNotFoundError):
            folder.path.rename(rubbish)
            shutil.rmtree(rubbish)
        if record is not None and record.account is not None:
            job_accounts.release_account(record.account, home=self._home)


def _replica_folders(
    launch: Launch, *, folder: LaunchFolder
) -> Iterator[tuple[ReplicaFolder, str, int]]:
    for role in launch.roles:
        for index in range(len(role.placements)):
            yield folder.replica(role.name, index), role.name, index


def _node_name() -> str:
    return re.sub(r"[^a-z0-9-]+", "-", socket.gethostname().lower()).strip("-")[:63] or "local"


#: Seconds that a call may spend on killing what is left; the next call goes on.
_KILL_WITHIN = 3.0


def record_replica_end(
    record: LocalLaunchRecord, *, replica: ReplicaFolder
) -> LocalReplicaState | None:
    """The replica's state, after writing LOST for one whose supervisor has died.

    None as long as its supervisor may still come up.
    """
    state = LocalReplicaState.read(replica)
    if state is not None and state.ended:
        return state
    if state is None and time.time() - replica.path.stat().st_ctime < APPEARS_WITHIN:
        return None
    lock = try_lock(replica.lock)
    if lock is None:
        return state
    try:
        # Between the reading above and the lock, the supervisor may have written its last state.
        state = LocalReplicaState.read(replica)
        if state is not None and state.ended:
            return state
        return _mark_replica_lost(record, replica=replica, state=state)
    finally:
        os.close(lock)


def _mark_replica_lost(
    record: LocalLaunchRecord, *, replica: ReplicaFolder, state: LocalReplicaState | None
) -> LocalReplicaState:
    boot = processes.boot_id()
    if state is None:
        state = LocalReplicaState(
            phase=ReplicaPhase.PREPARING, boot=boot, supervisor=ProcessIdentity(pid=0, started=0)
        )
        message = Reason("launch.supervisor.not_started", "the supervisor did not start")
    elif state.boot != boot:
        message = Reason("launch.host.rebooted", "the host was rebooted during the run")
    elif processes.kill_until_exited(
        lambda: _surviving_processes(record, replica=replica, state=state), within=_KILL_WITHIN
    ):
        message = Reason(
            "launch.supervisor.killed",
            "the supervisor was killed; the remaining processes were killed as well",
        )
    else:
        return state
    lost = state.lost(message=message, at=time.time())
    lost.write(replica)
    return lost


def _surviving_processes(
    record: LocalLaunchRecord, *, replica: ReplicaFolder, state: LocalReplicaState
) -> list[ProcessIdentity]:
    """Living processes of this replica; where replicas share an account, those of its siblings not."""
    marked = processes.processes_with_variable(
        INSTANCE_VARIABLE, f"{record.instance}/{replica.path.name}"
    )
    found = {*marked, *(process for process in state.processes if process.alive())}
    alone = sum(len(role.placements) for role in record.launch.roles) == 1
    if record.account is not None and alone:
        found.update(processes.processes_of_account(record.account))
    return sorted(found, key=lambda process: process.pid)
