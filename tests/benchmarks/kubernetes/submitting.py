"""From "run this" until its pods stand, through the whole product and a real API server, one job after another.

``make bench ARGS=kubernetes-submitting``. The clock starts before the request is sent and ends when a watch of the
API server tells of the pod; the jobs' own work does not count.
"""

from __future__ import annotations

import io
import json
import statistics
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import requests

from controlplane.domain.jobs.lifecycle import ENDED_JOB_STATES
from tests.e2e.rest_client import RestClient
from tests.e2e.waiting import wait_until
from tests.kubernetes import clusters
from tests.kubernetes.control_planes import ControlPlane
from tests.kubernetes.products import product_on

RESULTS = Path("var/bench/kubernetes-submitting.json")
FULL = 40
#: Seconds.
LIMITS = {"p50": 1.0, "p99": 3.0}
#: Of the pods of jobs.
_PREFIX = "attempt-"
_PROGRAM = b"print('done')\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """Seconds from the request until the pod stands."""

    jobs: int
    p50: float
    p99: float
    longest: float


class Arrivals:
    """When each pod of a job was first told of."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}

    def pod_seen(self, name: str) -> None:
        if name.startswith(_PREFIX):
            self._at.setdefault(name, time.monotonic())

    def since(self, asked: float) -> float | None:
        """The first after that moment; None while there is none."""
        return min((at for at in self._at.values() if at > asked), default=None)


@contextmanager
def followed(plane: ControlPlane) -> Iterator[Arrivals]:
    """Every pod of the cluster, as the API server tells of it."""
    arrivals, over = Arrivals(), threading.Event()
    answer = requests.get(
        f"{plane.url}/api/v1/pods?watch=1",
        headers={"Authorization": f"Bearer {plane.tokens['admin']}"},
        verify=str(plane.folder / "ca.crt"),
        stream=True,
        timeout=(10, None),
    )
    answer.raise_for_status()

    def read() -> None:
        try:
            for line in answer.iter_lines():
                arrivals.pod_seen(json.loads(line)["object"]["metadata"]["name"])
        except (requests.RequestException, AttributeError, ValueError):
            # So ends a stream that is closed from here; a server that ended it is another matter.
            assert over.is_set()

    reader = threading.Thread(target=read, name="pods", daemon=True)
    reader.start()
    try:
        yield arrivals
    finally:
        over.set()
        answer.close()


def measure(client: RestClient, plane: ControlPlane, *, jobs: int) -> Measurements:
    """One job after another, so that each meets an idle cluster."""
    with tempfile.TemporaryDirectory() as folder:
        code = client.upload("code", file=_archive(Path(folder)))["uid"]
    with followed(plane) as arrivals:
        seconds = sorted(_seconds(client, code, arrivals) for _ in range(jobs))
    return Measurements(
        jobs=jobs,
        p50=statistics.median(seconds),
        p99=seconds[min(jobs - 1, round(jobs * 0.99))],
        longest=seconds[-1],
    )


def _seconds(client: RestClient, code: str, arrivals: Arrivals) -> float:
    """Of one job, which has ended when this comes back."""
    asked = time.monotonic()
    spec = {"argv": ["python", "main.py"]}
    job = client.post("jobs", {"kind": "script", "name": "quick", "code": code, "spec": spec})
    stands = wait_until(partial(arrivals.since, asked), bool, within=60, what="a pod")
    assert stands is not None
    wait_until(
        lambda: client.get(f"jobs/{job['uid']}")["state"],
        ENDED_JOB_STATES.__contains__,
        within=120,
        what="the end of a job",
    )
    return stands - asked


def _archive(folder: Path) -> Path:
    path = folder / "code.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        entry = tarfile.TarInfo("main.py")
        entry.size = len(_PROGRAM)
        tar.addfile(entry, io.BytesIO(_PROGRAM))
    return path


def main() -> int:
    """1 if a limit is not kept; 0 also where this machine can have no cluster."""
    try:
        with clusters.running(say=print) as live, product_on(live) as (_, client):
            found = measure(client, live.control_plane, jobs=FULL)
    except clusters.NoCluster as reason:
        print(reason, file=sys.stderr)
        return 0
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(asdict(found), indent=2) + "\n")
    for name, value in asdict(found).items():
        limit = f"  (at most {LIMITS[name]:g})" if name in LIMITS else ""
        print(f"{name:<22} {value:10.3f}{limit}")
    return int(any(getattr(found, name) > limit for name, limit in LIMITS.items()))
