"""A supervisor over dummies, as a program of its own so that a test can signal and kill it.

``python supervised.py FOLDER NAME…``: keeps one family a name; ``stubborn`` is one that does not end
when asked, and ``fickle`` ends by itself at once.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from launcher.process_output import TerminalOutput
from launcher.services import ServiceSpec
from launcher.supervisor import ProcessSupervisor, RestartPolicy, SupervisorStopRequested
from tests.integration.launcher.programs import family, python, stubborn


def _service(name: str, *, folder: Path, stop_order: int) -> ServiceSpec:
    commands = {
        "stubborn": stubborn(name, folder=folder),
        "fickle": python("print('good-bye'); raise SystemExit(3)"),
    }
    return ServiceSpec(
        name=name,
        command=commands.get(name, family(name, folder=folder)),
        grace_seconds=30.0 if name == "stubborn" else 1.0,
        stop_order=stop_order,
    )


def main() -> None:
    folder = Path(sys.argv[1])
    terminal = TerminalOutput(sys.stdout, names=sys.argv[2:])
    supervisor = ProcessSupervisor(
        folder=folder,
        environment=os.environ,
        logs=folder,
        terminal=terminal,
        policy=RestartPolicy(first_seconds=0.05, slow_seconds=30.0, quick_failures=4),
    )
    with supervisor:
        for stop_order, name in enumerate(sys.argv[2:]):
            supervisor.add(_service(name, folder=folder, stop_order=stop_order))
        try:
            supervisor.wait_until_ready(seconds=30)
            terminal.say("all ready")
            supervisor.watch()
        except SupervisorStopRequested:
            pass
    terminal.say("stopped")


if __name__ == "__main__":
    main()
