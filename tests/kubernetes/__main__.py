"""``python -m tests.kubernetes start|stop|status|build``: the test cluster by hand."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

from tests.kubernetes import clusters
from tests.kubernetes.processes import DidNotStart

FOLDER = Path("var/test-cluster")


def _say(text: str) -> None:
    print(text, flush=True)


def start(folder: Path) -> None:
    began = time.monotonic()
    there = clusters.found(folder)
    if there is not None and all(there.status().values()):
        _say(f"it runs already: KUBECONFIG={there.kubeconfig}")
        return
    stop(folder)
    cluster = clusters.make(folder, programs=clusters.programs(say=_say))
    try:
        cluster.start()
    except DidNotStart:
        cluster.stop()
        raise
    _say(f"ready after {time.monotonic() - began:.1f} s: KUBECONFIG={cluster.kubeconfig}")


def stop(folder: Path) -> None:
    there = clusters.found(folder)
    if there is not None:
        there.stop()
        shutil.rmtree(folder)


def status(folder: Path) -> None:
    there = clusters.found(folder)
    if there is None:
        _say("there is none; start makes one")
        return
    for name, runs in there.status().items():
        _say(f"{name:26} {'runs' if runs else 'does not run'}")


def build(_folder: Path) -> None:
    _say(f"built: {clusters.programs(say=_say)}")


def main() -> int:
    commands = {"start": start, "stop": stop, "status": status, "build": build}
    parser = argparse.ArgumentParser(prog="python -m tests.kubernetes", description=__doc__)
    parser.add_argument("act", choices=commands)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    asked = parser.parse_args()
    try:
        commands[asked.act](asked.folder.absolute())
    except (clusters.NoCluster, DidNotStart) as reason:
        print(reason, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
