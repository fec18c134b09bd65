"""Whether the matrix test of burn-in calls right products right and wrong ones wrong, whatever the kernel."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROBE = ROOT / "tests" / "benchmarks" / "burnin" / "probe.py"
WITHIN = 180.0
#: The oldest kernels that torch and oneDNN have for x86; elsewhere the settings are ignored.
OLDEST = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41"}
#: The lowest bit of a 16-bit result may be its rounding to either neighbour.
FIRST_DETECTED = {"float32": 0, "bfloat16": 1, "float16": 1}


def probe(python: Path, *arguments: str, environment: dict[str, str]) -> Any:
    done = subprocess.run(
        [str(python), str(PROBE), *arguments],
        env=os.environ
        | {"PYTHONPATH": str(ROOT / "platform"), "OMP_NUM_THREADS": "1"}
        | environment,
        stdout=subprocess.PIPE,
        text=True,
        timeout=WITHIN,
        check=True,
    )
    return json.loads(done.stdout)


def test_right_products_pass_in_every_order_and_flipped_bits_are_detected(
    engine_python: Path,
) -> None:
    arguments = ("orders", "48", "1", "kernels", "64,257", "1", "flips", "256", "64")
    orders, kernels, flips = probe(engine_python, *arguments, environment={})
    assert (orders["checked"], orders["alarms"]) == (3 * 40, [])
    # The emulation does round: random reals give other results in other orders.
    assert orders["distinct"] > 30
    assert (kernels["checked"], kernels["alarms"]) == (3 * 2 * 3, [])
    for dtype, lowest in FIRST_DETECTED.items():
        assert set(flips[dtype]["first"][lowest:]) == {1.0}, dtype
        assert set(flips[dtype]["later"]) == {1.0}, dtype


def test_right_products_of_the_oldest_kernels_pass(engine_python: Path) -> None:
    (found,) = probe(engine_python, "kernels", "64,257", "1", environment=OLDEST)
    assert (found["checked"], found["alarms"]) == (3 * 2 * 3, [])
