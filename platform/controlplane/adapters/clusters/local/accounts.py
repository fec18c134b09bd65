"""An account of its own for each Launch, where the product runs as root.

The account is a user id without a name, taken from a range that nothing else on the machine should
use. It is held from the launch until the Launch is removed, because its files stay that long.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from controlplane.adapters.clusters.local.folders import HomeFolder, locked
from controlplane.adapters.clusters.local.interpreters import closed_folder
from controlplane.adapters.clusters.local.processes import of_account
from controlplane.adapters.clusters.local.records import Separation
from controlplane.ports.clusters import ClusterUnavailable

#: CAP_CHOWN, CAP_KILL, CAP_SETGID, CAP_SETUID as in linux/capability.h.
_NEEDED_CAPABILITIES = (0, 5, 6, 7)

FIRST = 200_000
LAST = 265_535


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How this machine keeps jobs apart, and why in words fit for a page."""

    separation: Separation
    sentence: str


def policy(*, home: Path, first: int, last: int) -> Policy:
    """What is possible here for jobs under ``home``, which must exist."""
    obstacle = _obstacle(first=first, last=last)
    if obstacle:
        return Policy(
            separation=Separation.NONE,
            sentence="not isolated: jobs run as the same account as the product and can read its "
            f"files ({obstacle}); run it as root, or only work that you trust",
        )
    closed = closed_folder(home)
    if closed is None:
        return Policy(
            separation=Separation.ACCOUNT,
            sentence=f"each launch has an account of its own ({first}–{last}), a private folder, a "
            "scrubbed environment and no way to new privileges; network and kernel are shared",
        )
    if shutil.which("setpriv") is None:
        return Policy(
            separation=Separation.NONE,
            sentence=f"not isolated: {closed} is closed to other accounts and setpriv (util-linux) is "
            "not installed, so jobs run as the product's account; move the product's folder",
        )
    return Policy(
        separation=Separation.ACCOUNT_THAT_READS_ALL,
        sentence=f"not isolated: {closed} is closed to other accounts, so each launch has an account "
        "of its own that may read every file; set NINEFOLD_HOME to a folder outside it",
    )


def available(*, first: int = FIRST, last: int = LAST) -> bool:
    """Whether processes can be given those accounts here."""
    return not _obstacle(first=first, last=last)


def _obstacle(*, first: int, last: int) -> str:
    """Why other accounts cannot be used here, or nothing."""
    if os.geteuid() != 0:
        return "it was not started by root"
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    held = int(line.split()[1], 16)
    if not all(held >> number & 1 for number in _NEEDED_CAPABILITIES):
        return "root here may not switch accounts"
    for entry in Path("/proc/self/uid_map").read_text().splitlines():
        inside, _, count = (int(number) for number in entry.split())
        if inside <= first and last < inside + count:
            return ""
    return f"the user ids {first} to {last} do not exist in this container"


@contextmanager
def reserved(name: str, *, home: HomeFolder, first: int, last: int) -> Iterator[int]:
    """An account for the Launch of that name, free of other holders and of processes.

    The block creates the Launch's folder; an entry without one is given up by the next caller.

    :raises ClusterUnavailable: if every account of the range is held.
    """
    with locked(home.accounts_lock):
        held: set[int] = set()
        for entry in home.accounts.iterdir():
            if home.launch(str(entry.readlink())).path.is_dir():
                held.add(int(entry.name))
            else:
                entry.unlink()
        account = _free(held, home=home, first=first, last=last)
        entry = home.accounts / str(account)
        entry.symlink_to(name)
        try:
            yield account
        except BaseException:
            entry.unlink()
            raise


def _free(held: set[int], *, home: HomeFolder, first: int, last: int) -> int:
    # Two homes on one machine know nothing of each other: they start at different places.
    count = last - first + 1
    offset = int.from_bytes(hashlib.sha256(bytes(home.path.resolve())).digest()[:4])
    for step in range(count):
        account = first + (offset + step) % count
        if account not in held and not of_account(account):
            return account
    raise ClusterUnavailable(f"all {count} accounts for jobs are held: remove ended launches first")


def release(account: int, *, home: HomeFolder) -> None:
    with suppress(FileNotFoundError):
        (home.accounts / str(account)).unlink()
