"""The table of a drill, and its JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.drill.scoring import Measurement, Outcome

RESULTS = Path(__file__).resolve().parents[2] / "var" / "bench" / "drill.json"


def printed(outcomes: Sequence[Outcome]) -> str:
    """A table of figures and one of scenarios."""
    lines = ["| what | measured | goal | |", "|---|---|---|---|"]
    lines += [_row(metric) for outcome in outcomes for metric in outcome.metrics]
    lines += ["", "| scenario | | |", "|---|---|---|"]
    for outcome in outcomes:
        said = "; ".join((*outcome.wrong, *filter(None, [outcome.summary])))
        lines.append(f"| {outcome.name} | {'passed' if outcome.passed else 'FAILED'} | {said} |")
    return "\n".join(lines)


def _row(metric: Measurement) -> str:
    judged = metric.most is not None or metric.least is not None
    verdict = ("met" if metric.met else "FAILED") if judged else ""
    return f"| {metric.name} | {metric.value:,.4g} {metric.unit} | {metric.goal} | {verdict} |"


def format_outcome(outcome: Outcome) -> str:
    """In a line: that it passed, or everything that was wrong."""
    if outcome.passed:
        return "passed"
    missed = [
        f"{metric.name}: {metric.value:.4g}, not {metric.goal}"
        for metric in outcome.metrics
        if not metric.met
    ]
    return f"FAILED: {'; '.join((*outcome.wrong, *missed))}"


def written(outcomes: Sequence[Outcome], *, asked: Mapping[str, Any], to: Path) -> None:
    documents = [{**asdict(outcome), "passed": outcome.passed} for outcome in outcomes]
    for outcome in documents:
        for metric in outcome["metrics"]:
            # JSON knows no infinity.
            metric["value"] = metric["value"] if math.isfinite(metric["value"]) else None
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(json.dumps({"asked": dict(asked), "outcomes": documents}, indent=2) + "\n")
