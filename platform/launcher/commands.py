"""Commands of ``ninefold-server`` and ``python -m launcher``: start, stop and show the product of one home."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from typing import NoReturn

from launcher.configuration import LauncherConfiguration
from launcher.home_folder import (
    AlreadyRunning,
    RunRecord,
    SupervisorPhase,
    lock_home,
    read_run_record,
)
from launcher.process_output import TerminalOutput
from launcher.product import (
    open_stopped_product_database,
    require_startable,
    run_product,
    welcome_message,
)
from launcher.services import product_services
from launcher.supervisor import print_step_duration
from process_supervision.files import last_lines
from process_supervision.processes import start_in_session

_STOP_SECONDS = 90.0
_POLL_SECONDS = 0.1
#: The core's own program for it; the launcher only runs it.
_ENVIRONMENTS = "controlplane.adapters.clusters.local.engine_environments"
#: What ``systemctl status`` returns for a service that does not run.
NOT_RUNNING = 3


def start_product(configuration: LauncherConfiguration, *, detached: bool) -> int:
    """Run the product until a signal; or, detached, return as soon as it is ready.

    :returns: 0, also if it runs already; 1 if a detached one did not become ready.
    """
    layout = configuration.layout
    layout.create()
    names = [*(service.name for service in product_services(configuration)), "postgres"]
    terminal = TerminalOutput(sys.stdout, names=names)
    try:
        with lock_home(layout):
            require_startable(configuration, terminal=terminal)
            if not detached:
                run_product(configuration, terminal=terminal, print_welcome=True)
                return 0
    except AlreadyRunning:
        current_run = find_running(configuration)
        terminal.say(
            _describe_run(current_run)
            if current_run
            else f"{layout.home} is being stopped; try again"
        )
        return 0 if current_run else 1
    return _start_detached_product(configuration, terminal=terminal)


def run_detached_product(configuration: LauncherConfiguration) -> int:
    """Run the product without its processes' lines: the far end of a detached ``up``."""
    with lock_home(configuration.layout):
        run_product(
            configuration, terminal=TerminalOutput(sys.stdout, echo=False), print_welcome=False
        )
    return 0


def stop_product(configuration: LauncherConfiguration) -> int:
    """Stop the product and the jobs of the local cluster. :returns: 0 if nothing runs any more."""
    layout = configuration.layout
    layout.create()
    terminal = TerminalOutput(sys.stdout)
    current_run = find_running(configuration)
    if current_run is not None:
        with print_step_duration(terminal, f"stopping the product (process {current_run.pid})"):
            current_run.supervisor.stop(signal.SIGTERM, signal.SIGKILL, within=_STOP_SECONDS)
    with lock_home(layout), open_stopped_product_database(configuration) as url:
        if url is None:
            terminal.say(f"nothing has ever run in {layout.home}")
            return 0
        with print_step_duration(terminal, "stopping jobs"):
            return subprocess.run(
                [*configuration.manage, "stop_jobs"],
                cwd=configuration.working_folder,
                env=configuration.child_environment(database_url=url),
                stdin=subprocess.DEVNULL,
                check=False,
            ).returncode


def install_engine_environment(configuration: LauncherConfiguration) -> int:
    """Create the environment of the engine unless it exists. :returns: 0 on success."""
    configuration.layout.create()
    return subprocess.run(
        [configuration.python, "-m", _ENVIRONMENTS, "transformers"],
        cwd=configuration.working_folder,
        env=configuration.child_environment(database_url=""),
        stdin=subprocess.DEVNULL,
        check=False,
    ).returncode


def run_management_command(
    arguments: Sequence[str], *, configuration: LauncherConfiguration
) -> NoReturn:
    """Replace this process with a management command on the home of the configuration.

    The working folder stays: relative paths in ``arguments`` are the user's.
    """
    command = list(configuration.manage)
    if configuration.project is not None:
        command[1] = str(configuration.project / command[1])
    environment = {**configuration.environment, "NINEFOLD_HOME": str(configuration.layout.home)}
    os.execve(command[0], [*command, *arguments], environment)


def print_product_status(configuration: LauncherConfiguration) -> int:
    """Print what runs. :returns: 0 if the product runs, :data:`NOT_RUNNING` if not."""
    current_run = find_running(configuration)
    if current_run is None:
        print(
            f"not running (files in {configuration.layout.home}); "
            f"start it with: {configuration.user_command('up')}"
        )
        return NOT_RUNNING
    print(_describe_run(current_run))
    print(f"\n{'process':<10} {'pid':>8}  {'state':<8} {'restarts':>8}  since")
    for entry in current_run.processes:
        since = datetime.fromisoformat(entry.since).astimezone()
        print(
            f"{entry.name:<10} {entry.pid or '-':>8}  {'running' if entry.is_running() else 'waiting':<8}"
            f" {entry.restarts:>8}  {since:%Y-%m-%d %H:%M:%S}"
        )
    return 0


def print_product_logs(
    configuration: LauncherConfiguration, *, name: str | None, lines: int
) -> int:
    """Print the last lines of one process's log, or of all. :returns: 1 if there is none."""
    folder = configuration.layout.logs
    known = sorted(folder.glob("*.log"))
    selected = [path for path in known if name in (None, path.stem)]
    if not selected:
        have = ", ".join(path.stem for path in known) or "none yet"
        print(f"no log of {name or 'any process'} in {folder}; there are: {have}", file=sys.stderr)
        return 1
    for path in selected:
        for line in last_lines(path, lines=lines):
            print(line if name else f"{path.stem:<10} | {line}")
    return 0


def find_running(configuration: LauncherConfiguration) -> RunRecord | None:
    """The record of the supervisor that runs in this home now."""
    current_run = read_run_record(configuration.layout)
    return current_run if current_run and current_run.supervisor.alive() else None


def _describe_run(current_run: RunRecord) -> str:
    since = current_run.since.astimezone()
    processes = ", ".join(
        f"{entry.name} {entry.pid}" for entry in current_run.processes if entry.pid
    )
    return (
        f"Ninefold is {'running' if current_run.phase is SupervisorPhase.READY else current_run.phase} "
        f"since {since:%Y-%m-%d %H:%M:%S}: {current_run.web_url}, gateway {current_run.gateway_url}/v1\n"
        f"process {current_run.pid} keeps {processes or 'nothing yet'}"
    )


def _start_detached_product(
    configuration: LauncherConfiguration, *, terminal: TerminalOutput
) -> int:
    """Start :func:`serve` in a session of its own and show its output until it is ready."""
    path = configuration.layout.supervisor_log
    project = ("--project", str(configuration.project)) if configuration.project else ()
    with path.open("wb") as output:
        process = start_in_session(
            [configuration.python, "-m", "launcher", *project, "serve"],
            output=output,
            cwd=configuration.working_folder,
            env=configuration.environment,
        )
    try:
        with path.open(encoding="utf-8", errors="replace") as output:
            while True:
                ended = process.poll() is not None
                current_run = find_running(configuration)
                for line in output:
                    terminal.say(line.rstrip("\n"))
                if ended:
                    return 1
                if (
                    current_run
                    and current_run.pid == process.pid
                    and current_run.phase is SupervisorPhase.READY
                ):
                    break
                time.sleep(_POLL_SECONDS)
    except KeyboardInterrupt:
        process.terminate()
        raise
    greeting = welcome_message(configuration, interactive=terminal.is_interactive)
    terminal.say(greeting.replace("Ctrl-C (jobs go on), or ", ""))
    return 0
