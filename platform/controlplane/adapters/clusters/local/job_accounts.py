"""Accounts and interpreters of jobs: one user id for each Launch where the product runs as root.

The account is a user id without a name, taken from a range that nothing else on the machine should use. It is
reserved from the launch until the Launch is removed, because its files stay that long. Jobs run on a Python
that their account can execute.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from controlplane.adapters.clusters.local.launch_folders import LocalClusterFolder
from controlplane.adapters.clusters.local.launch_records import ProcessIsolation
from controlplane.domain.common.reasons import Reason, ReasonedError
from controlplane.ports.clusters import ClusterUnavailable
from process_supervision.files import hold_file_lock
from process_supervision.processes import has_capabilities, processes_of_account

#: CAP_CHOWN, CAP_KILL, CAP_SETGID, CAP_SETUID as in linux/capability.h.
_NEEDED_CAPABILITIES = (0, 5, 6, 7)

FIRST_ACCOUNT = 200_000
LAST_ACCOUNT = 265_535


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationPolicy:
    """How this machine isolates jobs, and why, as a message for a page."""

    separation: ProcessIsolation
    summary: str


def isolation_policy(*, home: Path, first: int, last: int) -> IsolationPolicy:
    """What is possible here for jobs under ``home``, which must exist."""
    unavailable = _job_accounts_unavailable_reason(first=first, last=last)
    if unavailable:
        return IsolationPolicy(
            separation=ProcessIsolation.NONE,
            summary="not isolated: jobs run as the same account as the product and can read its "
            f"files ({unavailable}); run it as root, or only work that you trust",
        )
    closed = find_untraversable_folder(home)
    if closed is None:
        return IsolationPolicy(
            separation=ProcessIsolation.ACCOUNT,
            summary=f"each launch has an account of its own ({first}–{last}), a private folder, a "
            "scrubbed environment and no way to new privileges; network and kernel are shared",
        )
    if shutil.which("setpriv") is None:
        return IsolationPolicy(
            separation=ProcessIsolation.NONE,
            summary=f"not isolated: {closed} is closed to other accounts and setpriv (util-linux) is "
            "not installed, so jobs run as the product's account; move the product's folder",
        )
    return IsolationPolicy(
        separation=ProcessIsolation.ACCOUNT_THAT_READS_ALL,
        summary=f"not isolated: {closed} is closed to other accounts, so each launch has an account "
        "of its own that may read every file; set NINEFOLD_HOME to a folder outside it",
    )


def can_use_job_accounts(*, first: int = FIRST_ACCOUNT, last: int = LAST_ACCOUNT) -> bool:
    """Whether processes can be given those accounts here."""
    return not _job_accounts_unavailable_reason(first=first, last=last)


def _job_accounts_unavailable_reason(*, first: int, last: int) -> str:
    """Why other accounts cannot be used here, or nothing."""
    if os.geteuid() != 0:
        return Reason("launch.accounts.not_root", "the process was not started by root")
    if not has_capabilities(*_NEEDED_CAPABILITIES):
        return Reason(
            "launch.accounts.capabilities_missing", "root is not allowed to switch accounts here"
        )
    for entry in Path("/proc/self/uid_map").read_text().splitlines():
        inside, _, count = (int(number) for number in entry.split())
        if inside <= first and last < inside + count:
            return ""
    return Reason(
        "launch.accounts.not_in_container",
        "the user IDs {first} to {last} do not exist in this container",
        first=first,
        last=last,
    )


@contextmanager
def reserve_job_account(
    name: str, *, home: LocalClusterFolder, first: int, last: int
) -> Iterator[int]:
    """An account for the Launch of that name, free of other holders and of processes.

    The block creates the Launch's folder; an entry without one is given up by the next caller.

    :raises ClusterUnavailable: if every account of the range is held.
    """
    with hold_file_lock(home.accounts_lock):
        used: set[int] = set()
        for entry in home.accounts.iterdir():
            if home.launch(str(entry.readlink())).path.is_dir():
                used.add(int(entry.name))
            else:
                entry.unlink()
        account = _find_free_account_id(used, home=home, first=first, last=last)
        entry = home.accounts / str(account)
        entry.symlink_to(name)
        try:
            yield account
        except BaseException:
            entry.unlink()
            raise


def _find_free_account_id(
    used: set[int], *, home: LocalClusterFolder, first: int, last: int
) -> int:
    # Two homes on one machine do not coordinate: they start at different offsets.
    count = last - first + 1
    offset = int.from_bytes(hashlib.sha256(bytes(home.path.resolve())).digest()[:4])
    for step in range(count):
        account = first + (offset + step) % count
        if account not in used and not processes_of_account(account):
            return account
    raise ClusterUnavailable(
        "launch.accounts.exhausted",
        "all job accounts ({count}) are in use; remove ended launches first",
        count=count,
    )


def release_account(account: int, *, home: LocalClusterFolder) -> None:
    with suppress(FileNotFoundError):
        (home.accounts / str(account)).unlink()


#: The version that engines are built for.
PYTHON_VERSION = "3.11"


class InterpreterNotFound(ReasonedError):
    """No Python was found that jobs could run on."""


def is_traversable_by_others(path: Path) -> bool:
    """Whether every folder down to ``path`` lets any account pass."""
    resolved = path.resolve()
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (resolved, *resolved.parents))


def find_untraversable_folder(path: Path) -> Path | None:
    """The topmost folder above or at ``path`` that lets no other account pass, if there is one."""
    resolved = path.resolve()
    for folder in (*reversed(resolved.parents), resolved):
        if not folder.stat().st_mode & stat.S_IXOTH:
            return folder
    return None


def find_interpreter(*, preferred: str = "", by_others: bool) -> Path:
    """The resolved path of an interpreter; ``by_others`` requires one that any account can execute.

    :raises InterpreterNotFound: if there is none; the message says what to install.
    """
    if preferred:
        path = shutil.which(preferred)
        if path is None:
            raise InterpreterNotFound(
                "launch.python.not_executable",
                "{path} is not an executable Python",
                path=repr(preferred),
            )
        if by_others and not is_traversable_by_others(Path(path)):
            raise InterpreterNotFound(
                "launch.python.not_accessible",
                "{path} is in {folder}, which job accounts cannot access; use a Python "
                "outside it, for example /usr/bin/python{version}",
                path=repr(preferred),
                folder=str(find_untraversable_folder(Path(path))),
                version=PYTHON_VERSION,
            )
        return Path(path).resolve()
    for candidate in _candidate_files():
        executable = candidate.is_file() and os.access(candidate, os.X_OK)
        if executable and (not by_others or is_traversable_by_others(candidate)):
            return candidate.resolve()
    raise InterpreterNotFound(
        "launch.python.not_found",
        "no Python {version} was found that job accounts can execute; install "
        "the package python{version}, or set NINEFOLD_LOCAL_PYTHON to a "
        "Python outside private folders",
        version=PYTHON_VERSION,
    )


def _candidate_files() -> list[Path]:
    name = f"python{PYTHON_VERSION}"
    own = Path(sys.base_prefix) / "bin" / name
    folders = [*os.get_exec_path(), "/usr/local/bin", "/usr/bin"]
    # A version manager's shim is a script that finds its versions by the user's own settings.
    system_folders = [
        Path(folder) / name for folder in folders if "shims" not in Path(folder).parts
    ]
    return [own, *system_folders]
