"""``make bench``: every benchmark, or those that are named; tables on the screen, JSON below ``var/bench``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping

from tests.benchmarks import catalog, finetune
from tests.benchmarks.gateway import proxy
from tests.benchmarks.sizing import tables

BENCHMARKS: Mapping[str, Callable[[], int]] = {
    "catalog": catalog.main,
    "finetune": finetune.main,
    "gateway": proxy.main,
    "sizing": tables.main,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    names = parser.parse_args().names or list(BENCHMARKS)
    if unknown := [name for name in names if name not in BENCHMARKS]:
        parser.error(f"no benchmark is called {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    return max(BENCHMARKS[name]() for name in names)


if __name__ == "__main__":
    sys.exit(main())
