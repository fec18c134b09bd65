"""One run of the product: start, readiness, supervision and stop; the body of ``up``."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import psutil

from launcher.configuration import GATEWAY_PORT, WEB_PORT, LauncherConfiguration
from launcher.home_folder import (
    ADMIN_PASSWORD,
    HomeLayout,
    ProcessEntry,
    RunRecord,
    SupervisorPhase,
    generate_missing_secrets,
    read_run_record,
    remove_run_record,
    write_run_record,
)
from launcher.postgres import prepare_server
from launcher.process_output import TerminalOutput
from launcher.services import postgres_service, product_services, setup_steps
from launcher.supervisor import ProcessSupervisor, SupervisorStopRequested, print_step_duration
from process_supervision.files import last_lines, write_private
from process_supervision.processes import (
    ProcessIdentity,
    bind_error,
    kill_until_exited,
    processes_of_session,
    wait_until,
)

_DATABASE_SECONDS = 60.0
_READY_SECONDS = 180.0
_LEFTOVER_SECONDS = 20.0


class ProductNotReady(RuntimeError):
    """A service did not become ready in time; the message ends with its last lines."""


def run_product(
    configuration: LauncherConfiguration, *, terminal: TerminalOutput, print_welcome: bool
) -> None:
    """Start the product, supervise it until a stop signal, stop it. The caller holds the lock of the home.

    ``print_welcome`` prints the URLs and how to sign in once everything is ready.

    :raises SetupStepFailed: if a preparing command fails.
    :raises ProductNotReady: if a process does not become ready.
    :raises PostgresFailed: if the embedded database cannot be prepared.
    """
    supervisor = ProcessSupervisor(
        folder=configuration.working_folder,
        environment=configuration.environment,
        logs=configuration.layout.logs,
        terminal=terminal,
    )
    record_writer = _RunRecordWriter(configuration, supervisor=supervisor)
    supervisor.on_change = record_writer.write
    try:
        with supervisor:
            try:
                record_writer.enter(SupervisorPhase.STARTING)
                _start_all_services(configuration, supervisor=supervisor, terminal=terminal)
                record_writer.enter(SupervisorPhase.READY)
                if print_welcome:
                    terminal.say(
                        welcome_message(configuration, interactive=terminal.is_interactive)
                    )
                supervisor.watch()
            except SupervisorStopRequested:
                pass
            record_writer.enter(SupervisorPhase.STOPPING)
            with print_step_duration(terminal, "stopping"):
                supervisor.stop()
    finally:
        remove_run_record(configuration.layout)
    terminal.say(
        "Stopped. Jobs of the local cluster go on; stop them too with: "
        + configuration.user_command("down")
    )


def require_startable(configuration: LauncherConfiguration, *, terminal: TerminalOutput) -> None:
    """Return once the product can start. The caller holds the lock of the home.

    :raises PortInUse: if another program listens on a port of the product.
    """
    _wait_for_orphaned_processes(configuration, terminal=terminal)
    for port, variable in (
        (configuration.web_port, WEB_PORT),
        (configuration.gateway_port, GATEWAY_PORT),
    ):
        require_free_port(
            host=configuration.bind,
            port=port,
            variable=variable,
            command=configuration.user_command("up"),
        )


@contextlib.contextmanager
def open_stopped_product_database(configuration: LauncherConfiguration) -> Iterator[str | None]:
    """The database's URL while the product does not run; None if there has never been one."""
    _wait_for_orphaned_processes(configuration, terminal=None)
    layout = configuration.layout
    if configuration.database_url is not None:
        yield configuration.database_url
    elif not (layout.postgres / "data").exists():
        yield None
    else:
        with prepare_server(folder=layout.postgres).start(
            log=layout.logs / "postgres.log"
        ) as running:
            yield running.url


def welcome_message(configuration: LauncherConfiguration, *, interactive: bool) -> str:
    """Return the URLs and how to sign in.

    The password is shown once, on a terminal only; otherwise the file that holds it is named, because other
    output is often kept in a log.
    """
    secrets = configuration.layout.secrets
    path = secrets / ADMIN_PASSWORD
    shown_marker = secrets / f".{ADMIN_PASSWORD}_told"
    if interactive and not shown_marker.exists():
        password = path.read_text().strip()
        shown_marker.touch(mode=0o600)
    else:
        password = f"in {path}"
    down = configuration.user_command("down")
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


def _start_all_services(
    configuration: LauncherConfiguration, *, supervisor: ProcessSupervisor, terminal: TerminalOutput
) -> None:
    layout = configuration.layout
    generate_missing_secrets(layout.secrets)
    url = configuration.database_url
    if url is None:
        with print_step_duration(terminal, "starting PostgreSQL"):
            server = prepare_server(folder=layout.postgres)
            supervisor.add(postgres_service(server))
            _require_ready(configuration, supervisor=supervisor, seconds=_DATABASE_SECONDS)
            url = server.url
            write_private(layout.database_url, f"{url}\n")
    supervisor.environment = configuration.child_environment(database_url=url)
    static = static_files_digest(configuration.project)
    collect = not static_files_are_collected(layout, expected=static)
    for step in setup_steps(configuration, collect_static=collect):
        with print_step_duration(terminal, step.name):
            supervisor.run_step(step)
    record_collected_static_files(layout, collected=static)
    with print_step_duration(terminal, "starting web, worker, beat, gateway, watcher and agent"):
        for service in product_services(configuration):
            supervisor.add(service)
        _require_ready(configuration, supervisor=supervisor, seconds=_READY_SECONDS)


def _require_ready(
    configuration: LauncherConfiguration, *, supervisor: ProcessSupervisor, seconds: float
) -> None:
    late = supervisor.wait_until_ready(seconds=seconds)
    if late:
        last = "\n".join(
            f"    {name} | {line}"
            for name in late
            for line in last_lines(configuration.layout.logs / f"{name}.log", lines=10)
        )
        raise ProductNotReady(
            f"not ready after {seconds:g} s: {', '.join(late)}. Last lines:\n{last}"
        )


class _RunRecordWriter:
    """Writes the run record of the home."""

    def __init__(
        self, configuration: LauncherConfiguration, *, supervisor: ProcessSupervisor
    ) -> None:
        self._configuration = configuration
        self._supervisor = supervisor
        self._phase = SupervisorPhase.STARTING
        self._since = datetime.now(UTC)
        self._process = ProcessIdentity.of_this_process()

    def enter(self, phase: SupervisorPhase) -> None:
        self._phase = phase
        self.write()

    def write(self) -> None:
        write_run_record(
            self._configuration.layout,
            RunRecord(
                pid=self._process.pid,
                ticks=self._process.started,
                phase=self._phase,
                since=self._since,
                web_url=self._configuration.web_url,
                gateway_url=self._configuration.gateway_url,
                processes=self._supervisor.processes,
            ),
        )


def _wait_for_orphaned_processes(
    configuration: LauncherConfiguration, *, terminal: TerminalOutput | None
) -> None:
    """Wait for processes of a killed supervisor: their guards stop them within the grace period."""
    earlier = read_run_record(configuration.layout)
    if earlier is None:
        return
    known = [entry for entry in earlier.processes if entry.pid]

    def leftovers() -> list[ProcessEntry]:
        return [entry for entry in known if entry.is_running()]

    if leftovers() and terminal is not None:
        names = ", ".join(entry.name for entry in leftovers())
        terminal.say(f"· waiting for what an earlier run left behind: {names}")
    if not wait_until(lambda: not leftovers(), seconds=_LEFTOVER_SECONDS):
        for entry in leftovers():
            kill_until_exited(partial(processes_of_session, entry.pid), within=_LEFTOVER_SECONDS)
    remove_run_record(configuration.layout)


def static_files_digest(project: Path | None) -> str:
    """A digest of what ``collectstatic`` reads: the product's files, the packages' versions.

    :param project: the checkout; None for an installed package.
    """
    if project is None:
        digest = hashlib.sha256(_installed_versions().encode())
        sources = _installed_static_sources()
    else:
        digest = hashlib.sha256((project / "requirements.lock").read_bytes())
        sources = _static_sources(project)
    for path in sorted(sources):
        status = path.stat()
        digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _static_sources(project: Path) -> Iterator[Path]:
    roots = [project / "static", *(project / "apps").glob("*/static")]
    roots += (project / "platform").glob("**/static")
    yield from (project / "platform" / "config" / "settings").glob("*.py")
    for root in roots:
        yield from (path for path in root.rglob("*") if path.is_file())


def _installed_versions() -> str:
    """Names and versions of all packages of this environment, a line each."""
    packages = {
        f"{package.metadata['Name']}=={package.version}\n"
        for package in importlib.metadata.distributions()
    }
    return "".join(sorted(packages))


def _installed_static_sources() -> Iterator[Path]:
    for file in importlib.metadata.files("ninefold") or ():
        if "static" in file.parts or file.match("config/settings/*.py"):
            yield Path(str(file.locate()))


def static_files_are_collected(layout: HomeLayout, *, expected: str) -> bool:
    try:
        return _static_files_digest_path(layout).read_text().strip() == expected
    except FileNotFoundError:
        return False


def record_collected_static_files(layout: HomeLayout, *, collected: str) -> None:
    write_private(_static_files_digest_path(layout), f"{collected}\n")


def _static_files_digest_path(layout: HomeLayout) -> Path:
    # Beside the files: deleting them deletes the record too.
    return layout.home / "static" / ".fingerprint"


class PortInUse(RuntimeError):
    """Another process listens on the port; the message names it and what to do."""


def require_free_port(*, host: str, port: int, variable: str, command: str = "make up") -> None:
    """Return if a server could listen there now.

    :raises PortInUse: if none could; ``variable`` is the one that chooses another port of ``command``.
    """
    error = bind_error(port, host=host)
    if error is not None:
        raise PortInUse(
            f"cannot listen on {host}:{port} ({error.strerror}): {_describe_port_holder(port)}. "
            f"Choose another port with {variable}, for example: {variable}={port + 10} {command}"
        ) from error


def _describe_port_holder(port: int) -> str:
    for pid in _listening_pids(port):
        try:
            process = psutil.Process(pid)
            home = process.environ().get("NINEFOLD_HOME")
            if home:
                return (
                    f"the Ninefold whose files are in {home} has it (process {pid}); "
                    f"stop that one with: NINEFOLD_HOME={home} {_down_command(process)}"
                )
            return f"process {pid} ({process.name()}) has it"
        except psutil.Error:
            continue
    return "a process of another account has it, or the address is not one of this machine"


def _down_command(process: psutil.Process) -> str:
    """Return the command that stops the product of a process: that of its checkout, or of its installation."""
    has_makefile = Path(process.cwd(), "Makefile").is_file()
    return "make down" if has_makefile else "ninefold-server down"


def _listening_pids(port: int) -> list[int]:
    try:
        connections = psutil.net_connections(kind="tcp")
    except psutil.AccessDenied:
        return []
    return [
        connection.pid
        for connection in connections
        if connection.status == psutil.CONN_LISTEN
        and connection.laddr.port == port
        and connection.pid is not None
    ]
