"""``make bench``: every benchmark, or those that are named; tables on the screen, JSON below ``var/bench``.

Some read public research data, which is not part of the project: they run where ``--data`` names its folder.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.benchmarks import catalog, finetune, simulated
from tests.benchmarks.gateway import proxy
from tests.benchmarks.kubernetes import scale, watching
from tests.benchmarks.queues import fullcycles, replays
from tests.benchmarks.scheduling import migration, moves, quality, speed, waits
from tests.benchmarks.sizing import tables

BENCHMARKS: Mapping[str, Callable[[], int]] = {
    "catalog": catalog.main,
    "finetune": finetune.main,
    "gateway": proxy.main,
    "kubernetes-scale": scale.main,
    "kubernetes-watching": watching.main,
    "queues-baseline": replays.baseline,
    "queues-cycle": fullcycles.main,
    "queues-large": replays.large,
    "queues-topology": replays.topology,
    "scheduling-moves": moves.main,
    "scheduling-speed": speed.main,
    "simulated": simulated.main,
    "sizing": tables.main,
}
#: Those that need the folder of the data.
ON_DATA: Mapping[str, Callable[[Path], int]] = {
    "scheduling-migration": migration.main,
    "scheduling-quality": quality.main,
    "scheduling-waits": waits.main,
}


def main() -> int:
    names = [*BENCHMARKS, *ON_DATA]
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of the research data")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in names]:
        parser.error(f"no benchmark is called {unknown[0]!r}; there are {', '.join(names)}")
    if needing := [name for name in arguments.names if name in ON_DATA and not arguments.data]:
        parser.error(f"{needing[0]} needs --data FOLDER")
    chosen = arguments.names or (names if arguments.data else list(BENCHMARKS))
    return max(
        BENCHMARKS[name]() if name in BENCHMARKS else ON_DATA[name](arguments.data)
        for name in chosen
    )


if __name__ == "__main__":
    sys.exit(main())
