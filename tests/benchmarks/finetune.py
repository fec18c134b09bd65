"""The full fine-tune of the tiny model on the address sample, through the whole product.

Limit: six minutes on two cores, with a held-out exact match of at least 0.6.
"""

from __future__ import annotations

import json
import sys

from tests.e2e.main_job import RECIPES, ROOT, MainJob
from tests.e2e.product import running_product

LONGEST_SECONDS = 360.0
LEAST_EXACT_MATCH = 0.6


def main() -> int:
    """0 if both limits hold."""
    with running_product() as product:
        report = MainJob(product.client(), gateway=product.gateway, recipe=RECIPES["full"]).run()
    print(report.table())
    results = ROOT / "var" / "bench"
    results.mkdir(parents=True, exist_ok=True)
    (results / "finetune.json").write_text(json.dumps(report.measurements, indent=2))
    seconds = report.measurements["finetune_seconds"]
    matched = report.measurements["exact_match_after"]
    print(f"fine-tune {seconds:.0f} s (at most {LONGEST_SECONDS:.0f}), exact match {matched:.3f}")
    return 0 if seconds <= LONGEST_SECONDS and matched >= LEAST_EXACT_MATCH else 1


if __name__ == "__main__":
    sys.exit(main())
