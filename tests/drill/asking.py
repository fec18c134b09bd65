"""What is asked of a drill."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

PARTS = (
    "burst", "flapping", "silent", "outage", "database", "garbage", "storm", "events", "scrape",
    "week",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    nodes: int = 1250
    hours: float = 168
    #: Times the published rate.
    rate: float = 100
    seed: int = 1
    #: Of the part "scrape", which has a product and a cluster of its own.
    exporters: int = 100
    faults: int = 30
    only: tuple[str, ...] = PARTS

    def as_json(self) -> Mapping[str, Any]:
        return asdict(self)


def asked(arguments: Sequence[str]) -> Asked:
    """As the command line says it; leaves the program if that makes no sense."""
    defaults = Asked()
    parser = argparse.ArgumentParser(prog="make drill ARGS=…", description=__doc__)
    parser.add_argument("--nodes", type=int, default=defaults.nodes, help="of eight cards each")
    parser.add_argument("--hours", type=float, default=defaults.hours, help="that are replayed")
    parser.add_argument(
        "--rate", type=float, default=defaults.rate, help="times the published rate"
    )
    parser.add_argument("--seed", type=int, default=defaults.seed)
    parser.add_argument(
        "--exporters", type=int, default=defaults.exporters, help="of the part scrape"
    )
    parser.add_argument("--faults", type=int, default=defaults.faults, help="of the part scrape")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    given = parser.parse_args(arguments)
    if given.nodes < 12 or not (given.hours > 0 and given.rate > 0):
        parser.error("a drill wants at least 12 nodes, and hours and a rate above 0")
    if not 1 <= given.faults <= given.exporters <= 200:
        parser.error("--exporters must be at most 200, and --faults from 1 to --exporters")
    return Asked(
        nodes=given.nodes,
        hours=given.hours,
        rate=given.rate,
        seed=given.seed,
        exporters=given.exporters,
        faults=given.faults,
        only=tuple(given.only),
    )
