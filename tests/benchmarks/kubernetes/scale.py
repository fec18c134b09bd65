"""A large Kubernetes: 1,250 simulated nodes with 10,000 cards and 2,000 running pods on a real API server.

``make bench ARGS=kubernetes-scale``. The API server, its store, controllers and scheduler are real and share this
machine with the benchmark; the nodes are objects, and a loop says that their pods run. Times are of the adapter's
own calls, from the call to its return: what a worker of the product waits for. Limits are in ``LIMITS``.
"""

from __future__ import annotations

import json
import logging
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import psutil

from controlplane.adapters.clusters.kubernetes import KubernetesCluster
from controlplane.ports.clusters import ReplicaPhase
from controlplane.ports.launches import Launch, LaunchPlacement, LaunchRole
from tests.kubernetes import clusters, crowds
from tests.kubernetes.crowds import Crowd, Kind
from tests.kubernetes.fleets import launched

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "var" / "bench" / "kubernetes-scale.json"
#: Of the full size, in seconds, calls or MiB.
LIMITS = {
    "inventory": 10.0,
    "observe_all": 10.0,
    "launch_p50": 0.5,
    "launch_p99": 2.0,
    "calls_to_launch": 12.0,
    "calls_to_end": 20.0,
}
_TEAM = "bench"
_CARDS, _PER_NODE = 4, 2
_ITERATIONS = 5
_WORKERS = 4
_WITHIN = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    nodes: int
    #: Running at the end.
    launches: int
    #: Of them, launched one by one on the idle cluster; the others by several workers at once.
    alone: int


FULL = Size(nodes=1250, launches=2000, alone=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """Seconds where nothing else is said."""

    nodes: int
    cards: int
    pods: int
    #: Of the machine over the last minute, when the measuring began and ended.
    load_before: float
    load_after: float
    launch_p50: float
    launch_p99: float
    calls_to_launch: float
    launches_per_second: float
    list_nodes: float
    list_pods: float
    inventory: float
    names: float
    observe_all: float
    calls_to_observe_all: float
    observe_one: float
    #: To stop, see the end and remove, each.
    end_p50: float
    calls_to_end: float
    #: MiB, of this process and of the API server.
    memory_before: float
    memory_after: float
    memory_of_api_server: float


class Calls(logging.Handler):
    """Counts what a thread asks of API servers, by what the HTTP library says of each answer."""

    def __init__(self) -> None:
        super().__init__(level=logging.DEBUG)
        self.count = 0
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread and '" ' in record.getMessage():
            self.count += 1

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Counts on, for the block. The crowd has threads of its own."""
        log = logging.getLogger("urllib3.connectionpool")
        level, passes_on = log.level, log.propagate
        # Counted is enough: whoever reads the log of a run wants none of these lines.
        log.setLevel(logging.DEBUG)
        log.propagate = False
        log.addHandler(self)
        try:
            yield
        finally:
            log.removeHandler(self)
            log.propagate = passes_on
            log.setLevel(level)


def main() -> int:
    """1 if a limit is not kept; 0 also where this machine can have no cluster."""
    kind = replace(crowds.H800, count=FULL.nodes)
    began = time.monotonic()
    try:
        with crowds.gathered(kind, say=print) as crowd:
            print(f"{FULL.nodes} nodes after {time.monotonic() - began:.0f} s")
            found = measure(crowd, kind, FULL, say=print)
    except clusters.NoCluster as reason:
        print(reason, file=sys.stderr)
        return 0
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(asdict(found), indent=2) + "\n")
    for name, value in asdict(found).items():
        limit = f"  (at most {LIMITS[name]:g})" if name in LIMITS else ""
        print(f"{name:<22} {value:10.3f}{limit}")
    return int(any(getattr(found, name) > limit for name, limit in LIMITS.items()))


def measure(crowd: Crowd, kind: Kind, size: Size, *, say: Callable[[str], None]) -> Measurements:
    """Fill the nodes, measure, and end those that were launched one by one.

    :param size: of it, the first ``alone`` launches are timed.
    """
    cluster, process = connected(crowd), psutil.Process()
    memory_before, load_before = _mebibytes(process), os.getloadavg()[0]
    asked = [_launch(number, kind) for number in range(size.launches)]
    names = [launch.name for launch in asked]
    # The first finds no namespace, and is not like the others.
    launched(cluster, asked[0])
    launching, alone = Calls(), []
    with launching.counted():
        for launch in asked[1 : size.alone]:
            alone.append(_timed(partial(cluster.launch, launch)))
    say(f"launched {size.alone} one by one")
    rate = _launch_at_once(crowd, asked[size.alone :])
    _until(lambda: _all_run(cluster, names), f"{size.launches} run")
    say(f"{size.launches} run")
    observing = Calls()
    with observing.counted():
        observe_all = _median(lambda: cluster.observe(names))
    reading = {
        "list_nodes": _median(lambda: cluster.api.list("/api/v1/nodes")),
        "list_pods": _median(lambda: cluster.api.list("/api/v1/pods")),
        "inventory": _median(cluster.inventory),
        "names": _median(cluster.names),
        "observe_one": _median(lambda: cluster.observe(names[:1])),
    }
    memory_after, load_after = _mebibytes(process), os.getloadavg()[0]
    ending = Calls()
    ends = [_timed(partial(_end, cluster, name, ending)) for name in names[: size.alone]]
    say(f"ended {size.alone}")
    return Measurements(
        nodes=size.nodes,
        cards=size.nodes * kind.cards,
        pods=size.launches,
        load_before=load_before,
        load_after=load_after,
        launch_p50=statistics.median(alone),
        launch_p99=statistics.quantiles(alone, n=100)[98],
        calls_to_launch=launching.count / len(alone),
        launches_per_second=rate,
        observe_all=observe_all,
        calls_to_observe_all=observing.count / _ITERATIONS,
        end_p50=statistics.median(ends),
        calls_to_end=ending.count / len(ends),
        memory_before=memory_before,
        memory_after=memory_after,
        memory_of_api_server=_mebibytes(crowd.api_server),
        **reading,
    )


def connected(crowd: Crowd) -> KubernetesCluster:
    """As a worker of the product is, with a connection and a pace of its own."""
    return KubernetesCluster(
        installation="03bench", kubeconfig=crowd.kubeconfig, image="crowd.test/nothing:1"
    )


def _launch(number: int, kind: Kind) -> Launch:
    """Half of a node's cards; two on each node before any is left out."""
    node, half = divmod(number, _PER_NODE)
    cards = tuple(range(half * _CARDS, (half + 1) * _CARDS))
    placement = LaunchPlacement(node=f"{kind.name}-{node:04}", cards=cards)
    role = LaunchRole(name="trainer", argv=("train",), placements=(placement,))
    return Launch(name=f"bench-{number:05}", roles=(role,), labels={"team": _TEAM})


def _launch_at_once(crowd: Crowd, asked: Sequence[Launch]) -> float:
    """Launches a second, by several workers."""

    def work(worker: int) -> None:
        cluster = connected(crowd)
        for launch in asked[worker::_WORKERS]:
            launched(cluster, launch)

    began = time.perf_counter()
    with ThreadPoolExecutor(_WORKERS) as workers:
        for _ in workers.map(work, range(_WORKERS)):
            pass
    return len(asked) / (time.perf_counter() - began)


def _all_run(cluster: KubernetesCluster, names: Sequence[str]) -> bool:
    seen = cluster.observe(names)
    return len(seen) == len(names) and all(
        replica.phase is ReplicaPhase.RUNNING
        for launch in seen.values()
        for replica in launch.replicas
    )


def _end(cluster: KubernetesCluster, name: str, calls: Calls) -> None:
    """Stop it, see its end once and remove it; how often its end was looked for does not count."""
    with calls.counted():
        cluster.stop(name, grace=timedelta(seconds=30))
    _until(lambda: cluster.observe([name])[name].ended, f"the end of {name}")
    with calls.counted():
        cluster.observe([name])
        cluster.remove(name)


def _until(met: Callable[[], bool], what: str) -> None:
    limit = time.monotonic() + _WITHIN
    while not met():
        if time.monotonic() > limit:
            raise TimeoutError(f"never within {_WITHIN:g} s: {what}")
        time.sleep(0.2)


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _median(call: Callable[[], object]) -> float:
    return statistics.median(_timed(call) for _ in range(_ITERATIONS))


def _mebibytes(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / 2**20
