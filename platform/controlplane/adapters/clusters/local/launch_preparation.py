"""Preparation of a Launch (folders, files, inputs, checkpoints), and the start barrier of its replicas.

It is done once for a Launch, by the replica that comes first; the others wait for it. Everything here
runs before any process of the job, so no path below the job's folder can have been tampered with. The
folder of an earlier Launch can: it is walked by descriptors and never through a symbolic link.

All replicas of a Launch start, or none does: each supervisor marks itself ready and starts its process only
when all are ready. A replica that cannot start stops the others.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from controlplane.adapters.clusters import launch_validation
from controlplane.adapters.clusters.local.launch_folders import (
    LaunchFolder,
    LocalClusterFolder,
    ReplicaFolder,
)
from controlplane.adapters.clusters.local.launch_records import LocalLaunchRecord, LocalReplicaState
from controlplane.domain.common.reasons import Reason
from controlplane.ports import adapter_registry
from controlplane.ports.artifacts import ArtifactError
from controlplane.ports.clusters import ExitCause
from controlplane.ports.launches import AUTHORITIES_FILE, Launch
from ninefold_runtime.exit_codes import TaskError
from ninefold_runtime.weight_cache import RemoteBlob, WeightCache
from process_supervision.files import try_lock

#: The folder below ``{work}`` that a continued Launch takes over.
CHECKPOINTS = "checkpoints"
#: After their use, inputs are not evicted for this long: then they are linked.
_HELD_SECONDS = 120.0

ReportProgress = Callable[[str | None], None]


class LaunchPreparationFailed(Exception):
    """A prerequisite of the Launch could not be prepared; the message is for the user."""


def prepare_launch(
    record: LocalLaunchRecord,
    *,
    home: LocalClusterFolder,
    values: Mapping[str, str],
    report: ReportProgress,
) -> None:
    """Make the Launch's folders ready; does nothing if another replica has.

    :raises LaunchPreparationFailed: if a blob is missing or there is no room.
    """
    folder = home.launch(record.launch.name)
    lock = try_lock(folder.preparing_lock)
    while lock is None:
        report(None)
        time.sleep(0.05)
        lock = try_lock(folder.preparing_lock)
    try:
        if not folder.prepared.exists():
            _prepare_launch_folders(record, home=home, values=values, report=report)
            folder.prepared.touch()
    except (ArtifactError, TaskError, OSError) as failure:
        raise LaunchPreparationFailed(str(failure)) from failure
    finally:
        os.close(lock)


def _prepare_launch_folders(
    record: LocalLaunchRecord,
    *,
    home: LocalClusterFolder,
    values: Mapping[str, str],
    report: ReportProgress,
) -> None:
    folder, account = home.launch(record.launch.name), record.account
    for private in (folder.work, folder.home, folder.tmp):
        private.mkdir(exist_ok=True)
        _set_owner(private, account, mode=0o700)
    _write_files(record, work=folder.work, values=values)
    _link_earlier_checkpoints(record, home=home, report=report)
    if record.launch.downloads:
        _download_inputs(record, home=home, report=report)
    else:
        _mount_inputs(record, folder=folder, report=report)


def _set_owner(path: Path, account: int | None, *, mode: int) -> None:
    path.chmod(mode)
    if account is not None:
        os.chown(path, account, account, follow_symlinks=False)


def _write_files(record: LocalLaunchRecord, *, work: Path, values: Mapping[str, str]) -> None:
    for name, text in record.launch.files.items():
        path = work / name
        for parent in reversed(path.relative_to(work).parents[:-1]):
            (work / parent).mkdir(exist_ok=True)
            _set_owner(work / parent, record.account, mode=0o700)
        path.write_text(launch_validation.fill_placeholders(text, values), encoding="utf-8")
        _set_owner(path, record.account, mode=0o600)


def _mount_inputs(
    record: LocalLaunchRecord, *, folder: LaunchFolder, report: ReportProgress
) -> None:
    folder.inputs.mkdir(exist_ok=True)
    if not record.launch.inputs:
        return
    store = adapter_registry.artifact_store(record.artifacts_kind, record.artifacts_options)
    for tree in record.launch.inputs:
        report(f"mounting input {tree.name}: {len(tree.files)} files")
        for name, digest in tree.files.items():
            path = folder.inputs / tree.name / name
            path.parent.mkdir(parents=True, exist_ok=True)
            store.materialise(digest, path)
            report(None)


def _download_inputs(
    record: LocalLaunchRecord, *, home: LocalClusterFolder, report: ReportProgress
) -> None:
    """Link the inputs to the weight cache of this machine.

    :raises TaskError: if one cannot be downloaded or does not fit.
    """
    folder = home.launch(record.launch.name)
    inputs = folder.inputs
    inputs.mkdir(exist_ok=True)
    authorities = folder.work / AUTHORITIES_FILE
    cache = WeightCache(
        home.weight_cache,
        limit=record.cache_limit,
        hold_seconds=_HELD_SECONDS,
        authorities=str(authorities) if AUTHORITIES_FILE in record.launch.files else "",
    )
    blobs = [
        RemoteBlob(digest=digest, size=download.size, url=download.url)
        for digest, download in record.launch.downloads.items()
    ]
    cache.fetch(blobs, report=report, check=lambda: report(None))
    for tree in record.launch.inputs:
        report(f"mounting input {tree.name}: {len(tree.files)} files")
        for name, digest in tree.files.items():
            path = inputs / tree.name / name
            path.parent.mkdir(parents=True, exist_ok=True)
            # What an interrupted preparation left.
            path.unlink(missing_ok=True)
            try:
                os.link(cache.path(digest), path)
            except OSError:
                # The cache is on another file system, or the blob has too many links.
                shutil.copyfile(cache.path(digest), path)
                path.chmod(0o444)
            report(None)


def _link_earlier_checkpoints(
    record: LocalLaunchRecord, *, home: LocalClusterFolder, report: ReportProgress
) -> None:
    """Link the regular files of the earlier Launch's checkpoints: it has ended and writes no more."""
    earlier = record.launch.continues
    if earlier is None:
        return
    target = home.launch(record.launch.name).work / CHECKPOINTS
    try:
        root = os.open(home.launch(earlier).work, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        report(f"nothing to continue: the working folder of {earlier} has been removed")
        return
    try:
        count = _link_tree(record, root=root, target=target, report=report)
    finally:
        os.close(root)
    report(f"continuing from {earlier}: {count} files of checkpoints taken over")


def _link_tree(
    record: LocalLaunchRecord, *, root: int, target: Path, report: ReportProgress
) -> int:
    try:
        status = os.stat(CHECKPOINTS, dir_fd=root, follow_symlinks=False)
    except FileNotFoundError:
        return 0
    if not stat.S_ISDIR(status.st_mode):
        return 0
    owner, count = os.fstat(root).st_uid, 0
    for parent, _, files, descriptor in os.fwalk(CHECKPOINTS, dir_fd=root):
        below = target / Path(parent).relative_to(CHECKPOINTS)
        below.mkdir()
        _set_owner(below, record.account, mode=0o700)
        for name in files:
            if _link_or_copy_checkpoint(name, descriptor=descriptor, to=below / name, owner=owner):
                _set_owner(below / name, record.account, mode=0o600)
                count += 1
            report(None)
    return count


def _link_or_copy_checkpoint(name: str, *, descriptor: int, to: Path, owner: int) -> bool:
    """Link or copy one file; False for what is no regular file."""
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=descriptor)
    except OSError:
        return False
    with os.fdopen(handle, "rb") as source:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            return False
        # The link will get a new owner: that may only happen to what was the job's own anyway.
        if status.st_uid == owner:
            os.link(name, to, src_dir_fd=descriptor, follow_symlinks=False)
        else:
            with to.open("xb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
    return True


#: Seconds that a supervisor may take from the launch to its first state.
APPEARS_WITHIN = 30.0


class GangPeers:
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

        :raises LaunchPreparationFailed: if another one cannot start any more.
        """
        (self._own.path / "ready").touch()
        reported = False
        while absent := [
            name for name, other in self._others.items() if not _is_replica_ready(other)
        ]:
            broken = self.broken() or self._lost_peer_message(absent)
            if broken:
                raise LaunchPreparationFailed(broken)
            report(None if reported else f"ready; waiting for {', '.join(absent)}")
            reported = True
            time.sleep(0.05)

    def broken(self) -> str:
        """A sentence on a replica that could not be started, or nothing."""
        for name, other in self._others.items():
            state = LocalReplicaState.read(other)
            if state is None or not state.ended:
                continue
            if state.cause is ExitCause.NOT_PREPARED or not _is_replica_ready(other):
                return Reason(
                    "launch.peer.start_failed",
                    "not started, because {replica} could not be started: {reason}",
                    replica=name,
                    reason=state.message,
                )
        return ""

    def _lost_peer_message(self, names: list[str]) -> str:
        for name in names:
            other = self._others[name]
            if LocalReplicaState.read(other) is None:
                if time.monotonic() - self._since > APPEARS_WITHIN:
                    return Reason(
                        "launch.peer.not_launched",
                        "not started, because {replica} was not launched",
                        replica=name,
                    )
            # Once it has written a state, its supervisor holds the lock until its end.
            elif (lock := try_lock(other.lock)) is not None:
                os.close(lock)
                if not _is_replica_ready(other) and not self.broken():
                    return Reason(
                        "launch.peer.supervisor_lost",
                        "not started, because the supervisor of {replica} is no longer running",
                        replica=name,
                    )
        return ""


def _is_replica_ready(replica: ReplicaFolder) -> bool:
    return (replica.path / "ready").exists()
