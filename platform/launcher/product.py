"""One run of the product, from the first process to the last: the body of ``up``."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from launcher import credentials, record, static_files
from launcher.configuration import GATEWAY_PORT, WEB_PORT, Configuration
from launcher.linux import is_running, kill_session, started_ticks
from launcher.logs import Terminal, tail
from launcher.ports import require_free
from launcher.postgres import prepare
from launcher.processes import postgres_service, services, steps
from launcher.record import Phase, Record
from launcher.supervisor import StopRequested, Supervisor, timed

_DATABASE_SECONDS = 60.0
_READY_SECONDS = 180.0
_LEFT_OVER_SECONDS = 20.0
_POLL_SECONDS = 0.1


class NotReady(RuntimeError):
    """A part of the product did not come up in time; the message ends with its last lines."""


def run(configuration: Configuration, *, terminal: Terminal, greet: bool) -> None:
    """Start everything, keep it until a signal asks to stop, stop it. The caller holds the home.

    ``greet`` prints where to go and how to log in once all is ready.

    :raises StepFailed: if a preparing command fails.
    :raises NotReady: if a process does not become ready.
    :raises PostgresFailed: if the embedded database cannot be prepared.
    """
    supervisor = Supervisor(
        folder=configuration.project,
        environment=configuration.environment,
        logs=configuration.layout.logs,
        terminal=terminal,
    )
    notes = _Notes(configuration, supervisor=supervisor)
    supervisor.on_change = notes.write
    try:
        with supervisor:
            try:
                notes.enter(Phase.STARTING)
                _bring_up(configuration, supervisor=supervisor, terminal=terminal)
                notes.enter(Phase.READY)
                if greet:
                    terminal.say(welcome(configuration, interactive=terminal.is_interactive))
                supervisor.watch()
            except StopRequested:
                pass
            notes.enter(Phase.STOPPING)
            with timed(terminal, "stopping"):
                supervisor.stop()
    finally:
        record.erase(configuration.layout)
    terminal.say("Stopped. Jobs of the local cluster go on; stop them too with: make down")


def require_room(configuration: Configuration, *, terminal: Terminal) -> None:
    """Return once nothing stands in the way of a start. The caller holds the home.

    :raises PortInUse: if another program listens where the product would.
    """
    _outlast_left_overs(configuration, terminal=terminal)
    for port, variable in (
        (configuration.web_port, WEB_PORT),
        (configuration.gateway_port, GATEWAY_PORT),
    ):
        require_free(host=configuration.bind, port=port, variable=variable)


@contextlib.contextmanager
def database(configuration: Configuration) -> Iterator[str | None]:
    """The database's URL while the product does not run; None if there has never been one."""
    _outlast_left_overs(configuration, terminal=None)
    layout = configuration.layout
    if configuration.database_url is not None:
        yield configuration.database_url
    elif not (layout.postgres / "data").exists():
        yield None
    else:
        with prepare(folder=layout.postgres).start(log=layout.logs / "postgres.log") as running:
            yield running.url


def welcome(configuration: Configuration, *, interactive: bool) -> str:
    """The addresses and how to sign in.

    The password is shown once, on a terminal only; otherwise the file that holds it is named, because other
    output is often kept in a log.
    """
    secrets = configuration.layout.secrets
    path = secrets / credentials.ADMIN_PASSWORD
    told = secrets / f".{credentials.ADMIN_PASSWORD}_told"
    if interactive and not told.exists():
        password = path.read_text().strip()
        told.touch(mode=0o600)
    else:
        password = f"in {path}"
    down = "make demo-down" if configuration.demo else "make down"
    return "\n".join(
        (
            "",
            "  Ninefold is ready",
            "",
            f"    pages and REST   {configuration.web_url}",
            f"    gateway          {configuration.gateway_url}/v1",
            "    log in as        admin",
            f"    password         {password}",
            f"    stop             Ctrl-C (jobs go on), or {down} (stops jobs too)",
            "",
        )
    )


def _bring_up(configuration: Configuration, *, supervisor: Supervisor, terminal: Terminal) -> None:
    layout = configuration.layout
    credentials.generate_missing(layout.secrets)
    url = configuration.database_url
    if url is None:
        with timed(terminal, "starting PostgreSQL"):
            server = prepare(folder=layout.postgres)
            supervisor.add(postgres_service(server))
            _require_ready(configuration, supervisor=supervisor, seconds=_DATABASE_SECONDS)
            url = server.url
            credentials.write_private(layout.database_url, f"{url}\n")
    supervisor.environment = configuration.child_environment(database_url=url)
    static = static_files.fingerprint(configuration.project)
    collect = not static_files.are_collected(layout, wanted=static)
    for step in steps(configuration, collect_static=collect):
        with timed(terminal, step.name):
            supervisor.run_step(step)
    static_files.note_collected(layout, collected=static)
    with timed(terminal, "starting web, worker, beat, gateway, watcher and agent"):
        for service in services(configuration):
            supervisor.add(service)
        _require_ready(configuration, supervisor=supervisor, seconds=_READY_SECONDS)


def _require_ready(configuration: Configuration, *, supervisor: Supervisor, seconds: float) -> None:
    late = supervisor.wait_until_ready(seconds=seconds)
    if late:
        last = "\n".join(
            f"    {name} | {line}"
            for name in late
            for line in tail(configuration.layout.logs / f"{name}.log", lines=10)
        )
        raise NotReady(f"not ready after {seconds:g} s: {', '.join(late)}. Last lines:\n{last}")


class _Notes:
    """Keeps the record of the home in step with what runs."""

    def __init__(self, configuration: Configuration, *, supervisor: Supervisor) -> None:
        self._configuration = configuration
        self._supervisor = supervisor
        self._phase = Phase.STARTING
        self._since = datetime.now(UTC)
        self._ticks = started_ticks(os.getpid()) or 0

    def enter(self, phase: Phase) -> None:
        self._phase = phase
        self.write()

    def write(self) -> None:
        record.write(
            self._configuration.layout,
            Record(
                pid=os.getpid(),
                ticks=self._ticks,
                phase=self._phase,
                since=self._since,
                web_url=self._configuration.web_url,
                gateway_url=self._configuration.gateway_url,
                processes=self._supervisor.processes,
            ),
        )


def _outlast_left_overs(configuration: Configuration, *, terminal: Terminal | None) -> None:
    """Wait for what a killed supervisor left: its guardians are stopping it, within their grace."""
    earlier = record.read(configuration.layout)
    if earlier is None:
        return
    known = [entry for entry in earlier.processes if entry.pid]

    def left() -> list[record.ProcessEntry]:
        return [entry for entry in known if is_running(entry.pid, ticks=entry.ticks)]

    if left() and terminal is not None:
        names = ", ".join(entry.name for entry in left())
        terminal.say(f"· waiting for what an earlier run left behind: {names}")
    if not wait_until(lambda: not left(), seconds=_LEFT_OVER_SECONDS):
        for entry in left():
            kill_session(entry.pid)
    record.erase(configuration.layout)


def wait_until(condition: Callable[[], bool], *, seconds: float) -> bool:
    """Whether it came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True
