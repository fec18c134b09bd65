"""What ``python -m launcher`` does: start, stop and show the product of one home."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from datetime import datetime

from launcher import record
from launcher.configuration import Configuration
from launcher.linux import is_running
from launcher.logs import Terminal, tail
from launcher.processes import services
from launcher.product import database, require_room, run, wait_until, welcome
from launcher.record import AlreadyRunning, Phase, Record
from launcher.supervisor import timed

_STOP_SECONDS = 90.0
_POLL_SECONDS = 0.1
#: The core's own program for it; the launcher only runs it.
_ENVIRONMENTS = "controlplane.adapters.clusters.local.environments"
#: What ``systemctl status`` returns for a service that does not run.
NOT_RUNNING = 3


def up(configuration: Configuration, *, detached: bool) -> int:
    """Run the product until a signal; or, detached, return as soon as it is ready.

    :returns: 0, also if it runs already; 1 if a detached one did not become ready.
    """
    layout = configuration.layout
    layout.create()
    names = [*(service.name for service in services(configuration)), "postgres"]
    terminal = Terminal(sys.stdout, names=names)
    try:
        with record.hold(layout):
            require_room(configuration, terminal=terminal)
            if not detached:
                run(configuration, terminal=terminal, greet=True)
                return 0
    except AlreadyRunning:
        found = running(configuration)
        terminal.say(_describe(found) if found else f"{layout.home} is being stopped; try again")
        return 0 if found else 1
    return _run_detached(configuration, terminal=terminal)


def serve(configuration: Configuration) -> int:
    """Run the product without its processes' lines: the far end of a detached ``up``."""
    with record.hold(configuration.layout):
        run(configuration, terminal=Terminal(sys.stdout, echo=False), greet=False)
    return 0


def down(configuration: Configuration) -> int:
    """Stop the product and the jobs of the local cluster. :returns: 0 if nothing runs any more."""
    layout = configuration.layout
    layout.create()
    terminal = Terminal(sys.stdout)
    found = running(configuration)
    if found is not None:
        with timed(terminal, f"stopping the product (process {found.pid})"):
            _stop(found)
    with record.hold(layout), database(configuration) as url:
        if url is None:
            terminal.say(f"nothing has ever run in {layout.home}")
            return 0
        with timed(terminal, "stopping jobs"):
            return subprocess.run(
                [configuration.python, "manage.py", "stop_jobs"],
                cwd=configuration.project,
                env=configuration.child_environment(database_url=url),
                stdin=subprocess.DEVNULL,
                check=False,
            ).returncode


def engine(configuration: Configuration) -> int:
    """Create the engine's environment, or find that it stands. :returns: 0 if it does then."""
    configuration.layout.create()
    return subprocess.run(
        [configuration.python, "-m", _ENVIRONMENTS, "transformers"],
        cwd=configuration.project,
        env=configuration.child_environment(database_url=""),
        stdin=subprocess.DEVNULL,
        check=False,
    ).returncode


def status(configuration: Configuration) -> int:
    """Print what runs. :returns: 0 if the product runs, :data:`NOT_RUNNING` if not."""
    found = running(configuration)
    if found is None:
        print(f"not running (files in {configuration.layout.home}); start it with: make up")
        return NOT_RUNNING
    print(_describe(found))
    print(f"\n{'process':<10} {'pid':>8}  {'state':<8} {'restarts':>8}  since")
    for entry in found.processes:
        alive = entry.pid and is_running(entry.pid, ticks=entry.ticks)
        since = datetime.fromisoformat(entry.since).astimezone()
        print(
            f"{entry.name:<10} {entry.pid or '-':>8}  {'running' if alive else 'waiting':<8}"
            f" {entry.restarts:>8}  {since:%Y-%m-%d %H:%M:%S}"
        )
    return 0


def logs(configuration: Configuration, *, name: str | None, lines: int) -> int:
    """Print the last lines of one process's log, or of all. :returns: 1 if there is none."""
    folder = configuration.layout.logs
    known = sorted(folder.glob("*.log"))
    wanted = [path for path in known if name in (None, path.stem)]
    if not wanted:
        have = ", ".join(path.stem for path in known) or "none yet"
        print(f"no log of {name or 'any process'} in {folder}; there are: {have}", file=sys.stderr)
        return 1
    for path in wanted:
        for line in tail(path, lines=lines):
            print(line if name else f"{path.stem:<10} | {line}")
    return 0


def running(configuration: Configuration) -> Record | None:
    """The record of the supervisor that runs in this home now."""
    found = record.read(configuration.layout)
    alive = found is not None and is_running(found.pid, ticks=found.ticks)
    return found if alive else None


def _describe(found: Record) -> str:
    since = found.since.astimezone()
    processes = ", ".join(f"{entry.name} {entry.pid}" for entry in found.processes if entry.pid)
    return (
        f"Ninefold is {'running' if found.phase is Phase.READY else found.phase} "
        f"since {since:%Y-%m-%d %H:%M:%S}: {found.web_url}, gateway {found.gateway_url}/v1\n"
        f"process {found.pid} keeps {processes or 'nothing yet'}"
    )


def _stop(found: Record) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(found.pid, signal.SIGTERM)
    gone = wait_until(lambda: not is_running(found.pid, ticks=found.ticks), seconds=_STOP_SECONDS)
    if not gone:
        with contextlib.suppress(ProcessLookupError):
            os.kill(found.pid, signal.SIGKILL)


def _run_detached(configuration: Configuration, *, terminal: Terminal) -> int:
    """Start :func:`serve` in a session of its own and show what it says until it is ready."""
    path = configuration.layout.supervisor_log
    with path.open("wb") as output:
        process = subprocess.Popen(
            [
                *(configuration.python, "-m", "launcher"),
                *("--project", str(configuration.project), "serve"),
            ],
            cwd=configuration.project,
            env=dict(configuration.environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        with path.open(encoding="utf-8", errors="replace") as said:
            while True:
                ended = process.poll() is not None
                found = running(configuration)
                for line in said:
                    terminal.say(line.rstrip("\n"))
                if ended:
                    return 1
                if found and found.pid == process.pid and found.phase is Phase.READY:
                    break
                time.sleep(_POLL_SECONDS)
    except KeyboardInterrupt:
        process.terminate()
        raise
    greeting = welcome(configuration, interactive=terminal.is_interactive)
    terminal.say(greeting.replace("Ctrl-C (jobs go on), or ", ""))
    return 0
