"""A program of the user's own: unpack it, run it, hand over what it left in ``outputs/``.

The program sees its code as the current folder, the inputs at ``NINEFOLD_INPUTS`` and writes results to
``NINEFOLD_OUTPUTS``. The token that reports the result is not passed on to it. Its standard output is the
log of the job.
"""

from __future__ import annotations

import os
import subprocess
import sys

from ninefold_runtime import archives
from ninefold_runtime.exits import BadInput, Stopped
from ninefold_runtime.inputs import Folders
from ninefold_runtime.report import Reporter
from ninefold_runtime.signals import StopRequest
from ninefold_runtime.specs import ScriptSpec

_WITHHELD = ("NINEFOLD_ATTEMPT_TOKEN", "NINEFOLD_REPORT_URL", "NINEFOLD_ENGINE_KEY")
_LOOK_EVERY_SECONDS = 0.2


def run_script(*, spec: ScriptSpec, folders: Folders, reporter: Reporter, stop: StopRequest) -> int:
    """The exit code of the program; its outputs are handed over only if that is 0.

    A program killed by signal N counts as 128 + N, as in a shell.

    :raises BadInput: if the archive is refused or there is no such program.
    :raises Stopped: if asked to end; the program was told, and has ended.
    """
    code = folders.work / "code"
    archive = folders.archive()
    code.mkdir(exist_ok=True)
    count = archives.unpack(archive, code) if archive is not None else 0
    folders.outputs.mkdir(exist_ok=True)
    reporter.message(f"unpacked {count} files; running {' '.join(spec.argv)}")
    environment = {name: value for name, value in os.environ.items() if name not in _WITHHELD}
    environment |= spec.environment
    environment["NINEFOLD_OUTPUTS"] = str(folders.outputs)
    argv = [sys.executable if spec.argv[0] == "python" else spec.argv[0], *spec.argv[1:]]
    with stop.deferred():
        try:
            process = subprocess.Popen(argv, cwd=code, env=environment)
        except OSError as error:
            raise BadInput(f"{spec.argv[0]!r} cannot be run: {error.strerror}") from error
        status = _wait(process, stop=stop)
    if stop.requested:
        raise Stopped(f"stopped; the program ended with {status}")
    if status != 0:
        reporter.message(f"the program failed with exit code {status}")
        return status
    reporter.deliver(folders.outputs, kind="outputs", metrics={})
    return 0


def _wait(process: subprocess.Popen[bytes], *, stop: StopRequest) -> int:
    told = False
    while True:
        try:
            status = process.wait(_LOOK_EVERY_SECONDS)
        except subprocess.TimeoutExpired:
            if stop.requested and not told:
                process.terminate()
                told = True
        else:
            return status if status >= 0 else 128 - status
