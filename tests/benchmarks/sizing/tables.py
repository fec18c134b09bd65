"""``make bench ARGS=sizing``: estimates beside what others measured, and beside tiny models that run here."""

from __future__ import annotations

import json
from pathlib import Path

from controlplane.domain.common.resources import GIB
from tests.benchmarks.sizing.comparing import estimated_gib
from tests.benchmarks.sizing.published import PUBLISHED
from tests.benchmarks.sizing.running import compare, engine_python, measure, measure_real

OUT = Path("var/bench/sizing.json")


def main() -> int:
    """Print the tables; 0 unless there is no engine to run."""
    rows = []
    print(
        "| model | what | tokens | weights | published GiB | estimated | error |\n|---|---|---|---|---|---|---|"
    )
    for published in PUBLISHED:
        estimated = estimated_gib(published)
        error = estimated / published.gib - 1
        weights = published.adapter_base or published.scheme
        tokens = published.context or "–"
        print(
            f"| {published.model} | {published.what} | {tokens} | {weights} × {published.tensor} "
            f"| {published.gib:.2f} | {estimated:.2f} | {error:+.1%} |"
        )
        rows.append({"model": published.model, "what": published.what, "error": error})
    python = engine_python()
    if python is None:
        print("no engine environment: set NINEFOLD_ENGINE_PYTHON or run a job first")
        return 1
    print("\n| model | run | weights | KV cache | total |\n|---|---|---|---|---|")
    for run in measure(python):
        found = compare(run)
        cache = "–" if found.cache is None else f"{found.cache:+.1%}"
        print(
            f"| {run.model} | {run.title} | {found.weights:+.1%} | {cache} | {found.total:+.1%} |"
        )
        rows.append({"model": run.model, "run": run.title, "error": found.total})
    print("\n| shape | run | peak GiB | error |\n|---|---|---|---|")
    for run in measure_real(python):
        total = compare(run).total
        print(f"| {run.model} | {run.title} | {run.answer['total'] / GIB:,.1f} | {total:+.1%} |")
        rows.append({"model": run.model, "run": run.title, "error": total})
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(rows, indent=2), encoding="utf-8")
    return 0
