"""The process of a replica: its command, its environment and what it may not do.

- Environment: built from nothing; the product's own variables are never copied.
- Account: the Launch's own where there is one, without supplementary groups; no way to new privileges.
- Limits: no core files, bounded open files, and bounded processes where the account is its own. Memory
  and run time are watched by the supervisor: an address-space limit would break programs that map far
  more than they touch.
- CPU: whole cores by affinity and a lower priority than the product's. A part of a core is rounded up,
  and a program can widen its own affinity: this keeps neighbours polite, it is no wall.
"""

from __future__ import annotations

import errno
import math
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from controlplane.adapters.clusters import launch_validation
from controlplane.adapters.clusters.local.launch_folders import LaunchFolder
from controlplane.adapters.clusters.local.launch_records import LocalLaunchRecord, ProcessIsolation
from controlplane.ports.launches import LaunchRole
from process_supervision.process_guard import set_parent_death_signal, set_process_option
from process_supervision.processes import start_in_session

#: Marks every process of a replica (``<instance>/<role>-<index>``), so that what a killed supervisor
#: leaves behind can be found.
INSTANCE_VARIABLE = "NINEFOLD_LAUNCH"

_PR_SET_NO_NEW_PRIVS = 38
_OPEN_FILES = 65_536
_PROCESSES = 8_192
_NICENESS = 5
_OOM_SCORE = 500


def job_environment(
    record: LocalLaunchRecord,
    role: LaunchRole,
    *,
    index: int,
    folder: LaunchFolder,
    runtime: Path,
    values: Mapping[str, str],
) -> dict[str, str]:
    """The whole environment of the process, secrets included."""
    interpreter = Path(values["python"])
    own = {
        "HOME": str(folder.home),
        "TMPDIR": str(folder.tmp),
        "USER": "ninefold-job",
        "LOGNAME": "ninefold-job",
        "LANG": "C.UTF-8",
        "PATH": f"{interpreter.parent}:/usr/local/bin:/usr/bin:/bin",
        "PYTHONUNBUFFERED": "1",
        "NINEFOLD_WORK": str(folder.work),
        "NINEFOLD_INPUTS": str(folder.inputs),
    }
    requested = {
        name: launch_validation.fill_placeholders(text, values)
        for name, text in role.environment.items()
    }
    python_path = [str(runtime), *filter(None, [requested.get("PYTHONPATH")])]
    return (
        own
        | requested
        | dict(record.launch.secrets)
        | dict(record.hidden_devices)
        | {
            "PYTHONPATH": ":".join(python_path),
            INSTANCE_VARIABLE: f"{record.instance}/{role.name}-{index}",
        }
    )


def start_job(
    record: LocalLaunchRecord,
    role: LaunchRole,
    *,
    index: int,
    folder: LaunchFolder,
    environment: Mapping[str, str],
    values: Mapping[str, str],
) -> subprocess.Popen[bytes]:
    """Start the replica's process in a session of its own; its output comes through a pipe.

    :raises OSError: if the command does not exist or may not be executed.
    """
    command = [launch_validation.fill_placeholders(part, values) for part in role.argv]
    account: int | None = record.account
    groups: tuple[int, ...] | None = ()
    if record.separation is ProcessIsolation.ACCOUNT_THAT_READS_ALL:
        _check_executable(command[0], path=environment["PATH"])
        command = [*_setpriv_command(record), *command]
    if record.separation is not ProcessIsolation.ACCOUNT:
        account, groups = None, None
    cores = cpu_cores_of_replica(role, index=index, usable=sorted(os.sched_getaffinity(0)))
    supervisor = os.getpid()

    def restrict() -> None:
        # After the change of account: that change clears the death signal.
        set_parent_death_signal(parent=supervisor, by=signal.SIGKILL)
        set_process_option(_PR_SET_NO_NEW_PRIVS, 1)
        os.sched_setaffinity(0, cores)
        os.nice(_NICENESS)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _lower_limit(resource.RLIMIT_NOFILE, _OPEN_FILES)
        if record.account is not None:
            _lower_limit(resource.RLIMIT_NPROC, _PROCESSES)

    process = start_in_session(
        command,
        before_exec=restrict,
        cwd=folder.work,
        env=environment,
        umask=0o077,
        user=account,
        group=account,
        extra_groups=groups,
    )
    # Where the machine runs out of memory, the kernel shall take a job and not the product.
    with suppress(OSError):
        Path(f"/proc/{process.pid}/oom_score_adj").write_text(str(_OOM_SCORE))
    return process


def cpu_cores_of_replica(role: LaunchRole, *, index: int, usable: list[int]) -> list[int]:
    """The cores that a replica keeps to: as many as its CPU limit, from its first card onwards."""
    if not role.limits.cpu:
        return usable
    count = min(len(usable), math.ceil(role.limits.cpu / 1000))
    cards = role.placements[index].cards
    first = cards[0] if cards else 0
    return sorted(usable[(first + step) % len(usable)] for step in range(count))


def _lower_limit(limit: int, wanted: int) -> None:
    _, hard = resource.getrlimit(limit)
    value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(limit, (value, value))


def _check_executable(program: str, *, path: str) -> None:
    """A missing command behind ``setpriv`` makes ``setpriv`` exit, which would look like the job's exit."""
    if shutil.which(program, path=path) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)


def _setpriv_command(record: LocalLaunchRecord) -> list[str]:
    return [
        "setpriv",
        f"--reuid={record.account}",
        f"--regid={record.account}",
        "--clear-groups",
        "--inh-caps=-all,+dac_read_search",
        "--ambient-caps=+dac_read_search",
        "--bounding-set=-all,+dac_read_search",
        "--no-new-privs",
        "--pdeathsig=KILL",
        "--",
    ]


def placeholder_values(
    *, work: str, inputs: str, python: str, index: int, ports: Mapping[str, int]
) -> dict[str, str]:
    filled = {
        "work": work,
        "inputs": inputs,
        "python": python,
        "index": str(index),
        # Every replica of this cluster is on this machine.
        "leader": "127.0.0.1",
    }
    return filled | {f"port:{name}": str(number) for name, number in ports.items()}
