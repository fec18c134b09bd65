"""``make bench``: every benchmark, or those that are named; tables on the screen, JSON below ``var/bench``.

Some read public research data, which is not part of the project: they run where ``--data`` names its folder.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.benchmarks import catalog, finetune, simulated
from tests.benchmarks.burnin import detection
from tests.benchmarks.gateway import proxy
from tests.benchmarks.kubernetes import scale, submitting, watching
from tests.benchmarks.queues import fullcycles, replays
from tests.benchmarks.scheduling import migration, quality, relocations, speed, waiting_times
from tests.benchmarks.sizing import tables
from tests.benchmarks.telemetry import ingestion

BENCHMARKS: Mapping[str, Callable[[], int]] = {
    "burnin": detection.main,
    "catalog": catalog.main,
    "finetune": finetune.main,
    "gateway": proxy.main,
    "kubernetes-scale": scale.main,
    "kubernetes-submitting": submitting.main,
    "kubernetes-watching": watching.main,
    "queues-cycle": fullcycles.main,
    "scheduling-moves": relocations.main,
    "scheduling-speed": speed.main,
    "simulated": simulated.main,
    "sizing": tables.main,
}
#: Those that can be asked for one of so many pieces of their load.
IN_PARTS: Mapping[str, Callable[[int], int]] = {
    "ingestion": ingestion.ingestion,
    "queues-baseline": replays.baseline,
    "queues-large": replays.large,
    "queues-topology": replays.topology,
    "queues-topology-hurried": replays.hurried,
}
#: Those that need the folder of the data.
ON_DATA: Mapping[str, Callable[[Path], int]] = {
    "scheduling-migration": migration.main,
    "scheduling-quality": quality.main,
    "scheduling-waits": waiting_times.main,
}


def main() -> int:
    names = [*BENCHMARKS, *IN_PARTS, *ON_DATA]
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of the research data")
    parser.add_argument(
        "--one-in", type=int, default=1, metavar="N", help="of a replay's pieces, one in so many"
    )
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in names]:
        parser.error(f"no benchmark is called {unknown[0]!r}; there are {', '.join(names)}")
    if needing := [name for name in arguments.names if name in ON_DATA and not arguments.data]:
        parser.error(f"{needing[0]} needs --data FOLDER")
    if arguments.one_in < 1:
        parser.error(f"--one-in takes a number from 1 up, got {arguments.one_in}")
    chosen = arguments.names or (names if arguments.data else [*BENCHMARKS, *IN_PARTS])
    return max(_run(name, arguments) for name in chosen)


def _run(name: str, arguments: argparse.Namespace) -> int:
    if name in IN_PARTS:
        return IN_PARTS[name](arguments.one_in)
    return ON_DATA[name](arguments.data) if name in ON_DATA else BENCHMARKS[name]()


if __name__ == "__main__":
    sys.exit(main())
