"""``make drill``: break a simulated fleet in every way that is known, and measure what the product does about it.

Faults go in as texts of exporters, pushes of agents and conditions of nodes; what is really wrong is known to the
drill alone. A database of its own is made for it and goes with it.
"""

from __future__ import annotations

import subprocess
import sys

from tests.benchmarks.queues.databases import ROOT, product_database, program
from tests.drill.asking import asked


def main() -> int:
    """0 if every goal is met and every scenario passed."""
    arguments = sys.argv[1:]
    asked(arguments)
    with product_database() as environment:
        done = subprocess.run(
            program("tests.drill.play", *arguments), cwd=ROOT, env=dict(environment), check=False
        )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
