"""The simulated cluster: its inventory of 10,000 cards, and what a loop asks of a thousand Launches.

``make bench ARGS=simulated``. Limits: the inventory within 0.5 s from its description, a thousand Launches
observed within 0.2 s.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from controlplane.adapters.clusters.simulated import SimulatedCluster
from controlplane.ports.launches import Launch, LaunchPlacement, LaunchRole

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "var" / "bench" / "simulated.json"
NODES, LAUNCHES, ITERATIONS = 1250, 1000, 7
LIMITS = {"inventory": 0.5, "observe": 0.2}
FLEET = {
    "groups": [
        {
            "name": "h800",
            "chip": "nvidia-h800",
            "nodes": NODES,
            "levels": {"leaf": 10, "spine": 50},
        }
    ]
}


def main() -> int:
    """1 if a limit is not kept."""
    with tempfile.TemporaryDirectory() as folder:
        found = _measure(Path(folder))
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")
    for name, seconds in found.items():
        limit = f"  (at most {LIMITS[name]} s)" if name in LIMITS else ""
        print(f"{name:<22} {seconds:8.4f} s{limit}")
    return int(any(found[name] > limit for name, limit in LIMITS.items()))


def _measure(home: Path) -> dict[str, float]:
    cluster = SimulatedCluster(home, fleet=FLEET)
    names = [f"attempt-{number}" for number in range(LAUNCHES)]
    began = time.perf_counter()
    for number, name in enumerate(names):
        cluster.launch(_training(name, node=f"h800-{number + 1:04}"))
    launching = (time.perf_counter() - began) / LAUNCHES
    return {
        "inventory": _median(lambda: SimulatedCluster(home, fleet=FLEET).inventory()),
        "inventory, again": _median(cluster.inventory),
        "launch, each": launching,
        "observe": _median(lambda: cluster.observe(names)),
        "log of one": _median(
            lambda: cluster.log(names[0], role="trainer", index=0, offset=-8192, limit=8192)
        ),
    }


def _training(name: str, *, node: str) -> Launch:
    return Launch(
        name=name,
        roles=(
            LaunchRole(
                name="trainer",
                argv=("train",),
                placements=(LaunchPlacement(node=node, cards=tuple(range(8))),),
            ),
        ),
    )


def _median(call: Callable[[], object]) -> float:
    times = []
    for _round in range(ITERATIONS):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times)
