"""The table of a drill, and its JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.drill.scoring import Figure, Outcome

RESULTS = Path(__file__).resolve().parents[2] / "var" / "bench" / "drill.json"


def printed(outcomes: Sequence[Outcome]) -> str:
    """A table of figures and one of scenarios."""
    lines = ["| what | measured | goal | |", "|---|---|---|---|"]
    lines += [_row(figure) for outcome in outcomes for figure in outcome.figures]
    lines += ["", "| scenario | | |", "|---|---|---|"]
    for outcome in outcomes:
        said = "; ".join((*outcome.wrong, *filter(None, [outcome.words])))
        lines.append(f"| {outcome.name} | {'passed' if outcome.passed else 'FAILED'} | {said} |")
    return "\n".join(lines)


def _row(figure: Figure) -> str:
    judged = figure.most is not None or figure.least is not None
    verdict = ("met" if figure.met else "FAILED") if judged else ""
    return f"| {figure.name} | {figure.value:,.4g} {figure.unit} | {figure.goal} | {verdict} |"


def told(outcome: Outcome) -> str:
    """In a line: that it passed, or everything that was wrong."""
    if outcome.passed:
        return "passed"
    missed = [
        f"{figure.name}: {figure.value:.4g}, not {figure.goal}"
        for figure in outcome.figures
        if not figure.met
    ]
    return f"FAILED: {'; '.join((*outcome.wrong, *missed))}"


def written(outcomes: Sequence[Outcome], *, asked: Mapping[str, Any], to: Path) -> None:
    told = [{**asdict(outcome), "passed": outcome.passed} for outcome in outcomes]
    for outcome in told:
        for figure in outcome["figures"]:
            # JSON knows no infinity.
            figure["value"] = figure["value"] if math.isfinite(figure["value"]) else None
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(json.dumps({"asked": dict(asked), "outcomes": told}, indent=2) + "\n")
