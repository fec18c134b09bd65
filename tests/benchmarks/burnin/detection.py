"""``make bench ARGS=burnin``: false alarms and detected bits of the matrix test of burn-in."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.benchmarks.sizing.running import engine_python

ROOT = Path(__file__).resolve().parents[3]
PROBE = Path(__file__).with_name("probe.py")
OUT = ROOT / "var" / "bench" / "burnin.json"
LIMIT_SECONDS = 900.0
SIZES = "64,100,257,512"
SEEDS = "3"
#: Settings that choose other kernels of torch, oneDNN and MKL.
SETTINGS: tuple[Mapping[str, str], ...] = (
    {},
    {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_CBWR": "COMPATIBLE"},
    {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_CBWR": "AVX2"},
    {"ATEN_CPU_CAPABILITY": "avx512", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE", "MKL_CBWR": "AVX512"},
    {"MKL_ENABLE_INSTRUCTIONS": "SSE4_2"},
    {"MKL_ENABLE_INSTRUCTIONS": "AVX2"},
)


def main() -> int:
    """Print the tables; 0 if there is an engine to run and no false alarm."""
    python = engine_python()
    if python is None:
        print("no engine environment: set NINEFOLD_ENGINE_PYTHON or run a job first")
        return 1
    rows = []
    print("| kernels | products | false alarms |\n|---|---|---|")
    for setting in SETTINGS:
        found = _probe(python, "kernels", SIZES, SEEDS, setting=setting)
        rows.append({"setting": dict(setting), **found})
        name = ", ".join(f"`{key}={value}`" for key, value in setting.items()) or "default"
        print(f"| {name} | {found['checked']} | {len(found['alarms'])} |", flush=True)
    orders = _probe(python, "orders", "256", "3")
    print(f"| emulated orders | {orders['checked']} | {len(orders['alarms'])} |", flush=True)
    flips = _probe(python, "flips", "2048", "1024")
    print("\n| type | bit | first | later | 8 √K u | γ_K |\n|---|---|---|---|---|---|")
    for dtype, rates in flips.items():
        columns = zip(
            rates["first"], rates["later"], rates["probable"], rates["gamma"], strict=True
        )
        for bit, column in enumerate(columns):
            print(f"| {dtype} | {bit} | " + " | ".join(f"{rate:.1%}" for rate in column) + " |")
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps({"kernels": rows, "orders": orders, "flips": flips}, indent=2))
    return 1 if orders["alarms"] or any(row["alarms"] for row in rows) else 0


def _probe(python: Path, *arguments: str, setting: Mapping[str, str] | None = None) -> Any:
    done = subprocess.run(
        [str(python), str(PROBE), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "platform"), **(setting or {})},
        stdout=subprocess.PIPE,
        text=True,
        timeout=LIMIT_SECONDS,
        check=True,
    )
    (found,) = json.loads(done.stdout)
    return found
