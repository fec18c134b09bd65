"""The launches of the local cluster as their supervisors of the earlier version left them, with a process each."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from process_supervision.processes import ProcessIdentity, boot_id
from tests.integration.upgrade.recorded import copy_launch

#: Holds the lock of its replica like a supervisor; at a line of input it writes the last state, and ends.
_SUPERVISOR = """
import fcntl, os, pathlib, sys
folder = pathlib.Path(sys.argv[1])
lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(lock, fcntl.LOCK_EX)
print("locked", flush=True)
if sys.stdin.readline():
    (folder / "ended.json").replace(folder / "state.json")
"""


@dataclass(kw_only=True)
class Machine:
    home: Path
    supervisors: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def supervise(self, launch: str) -> None:
        """Recreate the folder of the launch and start a supervisor for its only replica."""
        (folder,) = (copy_launch(launch, home=self.home) / "replicas").iterdir()
        supervisor = subprocess.Popen(
            [sys.executable, "-c", _SUPERVISOR, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.supervisors[launch] = supervisor
        assert supervisor.stdout is not None
        assert supervisor.stdout.readline() == "locked\n"
        identity = ProcessIdentity.of(supervisor.pid)
        assert identity is not None
        # The processes of the recorded state exist no more; the supervisor stands for all of them.
        for name in ("state.json", "ended.json"):
            state = json.loads((folder / name).read_text())
            state |= {"boot": boot_id(), "supervisor": [identity.pid, identity.started]}
            state["processes"] = [[identity.pid, identity.started] for _ in state["processes"]]
            (folder / name).write_text(json.dumps(state))

    def end(self, launch: str) -> None:
        """Have the supervisor write the last state that was recorded."""
        self.supervisors[launch].communicate("\n", timeout=30)

    def kill(self, launch: str) -> None:
        self.supervisors[launch].kill()
        self.supervisors[launch].wait()

    def close(self) -> None:
        for supervisor in self.supervisors.values():
            supervisor.kill()
            supervisor.communicate()
