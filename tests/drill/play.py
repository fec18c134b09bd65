"""The drill itself, on an empty database: ``python -m tests.drill`` makes one and runs this."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

from django.conf import settings

from controlplane.ports import adapter_registry
from tests.drill import company as companies
from tests.drill.asking import Asked, asked
from tests.drill.report import RESULTS, format_outcome, printed, written
from tests.drill.scenarios import SCENARIOS
from tests.drill.scoring import Outcome
from tests.drill.scraping import scrape
from tests.drill.week import replay


def main(arguments: Sequence[str]) -> int:
    """1 if a goal is not met or a scenario failed."""
    drill = asked(arguments)
    engine = companies.DrillEngine()
    known = {engine.name: engine}
    with patch.multiple(
        adapter_registry, engine_by_name=known.__getitem__, engine_names=lambda: tuple(known)
    ):
        outcomes = list(play(drill))
    print(printed(outcomes), flush=True)
    written(outcomes, asked=drill.as_json(), to=RESULTS)
    return int(not all(outcome.passed for outcome in outcomes))


def play(drill: Asked) -> Iterator[Outcome]:
    """The outcome of each scenario, then of the week; progress on the screen."""
    if "scrape" in drill.only:
        outcome = scrape(nodes=drill.exporters, faults=drill.faults, seed=drill.seed)
        print(f"scrape: {format_outcome(outcome)}", file=sys.stderr, flush=True)
        yield outcome
    if drill.only == ("scrape",):
        return
    home = Path(settings.NINEFOLD_HOME) / "drilled"
    home.mkdir(parents=True, exist_ok=True)
    company = companies.found(home, nodes=drill.nodes, seed=drill.seed)
    running = company.fill()
    print(f"{len(company.nodes)} nodes, {running} gangs run", file=sys.stderr, flush=True)
    for name, scenario in SCENARIOS.items():
        if name in drill.only:
            outcome = scenario(company)
            print(f"{name}: {format_outcome(outcome)}", file=sys.stderr, flush=True)
            yield outcome
            company.mend()
    if "week" in drill.only:
        yield replay(company, hours=drill.hours, rate=drill.rate)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
