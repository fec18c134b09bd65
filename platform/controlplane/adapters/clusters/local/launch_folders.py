"""What lies on disk for one Launch.

::

    <home>/jobs/<name>/           root:gid 0710   only the job's own group passes through
      launch.json                 0600            the whole record, secrets included
      stop.json                                   the first stop and its deadline
      work/ home/ tmp/            uid 0700        the job's own
      inputs/<tree>/…             0444            hard links to blobs
      replicas/<role>-<index>/    0700
        lock                      held by the supervisor as long as it lives
        state.json                what ``observe`` reads
        log                       output of the process, append only
        supervisor.log            output of the supervisor, empty unless it crashed
    <home>/jobs/.accounts/<uid>   which Launch holds that account
    <home>/jobs/.ports/<port>     locked while a replica holds that port
    <home>/engines/<name>/        an engine's environment, world readable
    <home>/cache/                 0700            inputs downloaded by presigned URL, hard-linked into launches
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controlplane.domain.common.reasons import ReasonedValueError
from process_supervision.files import write_private


def write_json(path: Path, value: object) -> None:
    """Replace the file in one step; readers see the old text or the new.

    :raises OSError: if there is no room; the old text stays.
    """
    write_private(path, json.dumps(value, ensure_ascii=False))


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in the file, or None if there is no file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not isinstance(value, dict):
        raise ReasonedValueError(
            "launch.file.not_an_object",
            "{file} contains a {type}; it must be a JSON object",
            file=path.name,
            type=type(value).__name__,
        )
    return value


def disk_usage(folder: Path) -> int:
    """Bytes that the files below the folder take on disk; what vanishes meanwhile does not count."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                seen = Path(parent, name).lstat()
                # A hard link counts once for each of its names.
                total += seen.st_blocks * 512 // max(1, seen.st_nlink)
    return total


@dataclass(frozen=True, slots=True)
class ReplicaFolder:
    path: Path

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def state(self) -> Path:
        return self.path / "state.json"

    @property
    def log(self) -> Path:
        return self.path / "log"

    @property
    def supervisor_log(self) -> Path:
        return self.path / "supervisor.log"

    @property
    def reserve(self) -> Path:
        """Blocks set aside so that the last state can be written to a full disk."""
        return self.path / "reserve"


@dataclass(frozen=True, slots=True)
class LaunchFolder:
    path: Path

    @property
    def record(self) -> Path:
        return self.path / "launch.json"

    @property
    def stop(self) -> Path:
        return self.path / "stop.json"

    @property
    def work(self) -> Path:
        return self.path / "work"

    @property
    def home(self) -> Path:
        return self.path / "home"

    @property
    def tmp(self) -> Path:
        return self.path / "tmp"

    @property
    def inputs(self) -> Path:
        return self.path / "inputs"

    @property
    def preparing_lock(self) -> Path:
        return self.path / "preparing.lock"

    @property
    def prepared(self) -> Path:
        return self.path / "prepared"

    def replica(self, role: str, index: int) -> ReplicaFolder:
        return ReplicaFolder(self.path / "replicas" / f"{role}-{index}")

    def footprint(self) -> int:
        """Bytes on disk without the inputs, which are the artifact store's."""
        return sum(
            disk_usage(folder)
            for folder in (self.work, self.home, self.tmp, self.path / "replicas")
        )


@dataclass(frozen=True, slots=True)
class LocalClusterFolder:
    path: Path

    @property
    def jobs(self) -> Path:
        return self.path / "jobs"

    @property
    def engines(self) -> Path:
        return self.path / "engines"

    @property
    def weight_cache(self) -> Path:
        return self.path / "cache"

    @property
    def accounts(self) -> Path:
        return self.jobs / ".accounts"

    @property
    def accounts_lock(self) -> Path:
        return self.jobs / ".accounts.lock"

    @property
    def ports(self) -> Path:
        return self.jobs / ".ports"

    def launch(self, name: str) -> LaunchFolder:
        return LaunchFolder(self.jobs / name)

    def create(self) -> None:
        """Make the folders; those that a job's account passes through stay closed to listing."""
        self.path.mkdir(parents=True, exist_ok=True)
        for folder, mode in (
            (self.jobs, 0o711),
            (self.engines, 0o755),
            (self.accounts, 0o700),
            (self.ports, 0o700),
        ):
            if not folder.is_dir():
                folder.mkdir(exist_ok=True)
                folder.chmod(mode)
