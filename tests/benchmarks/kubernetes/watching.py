"""What following a large cluster costs: memory and time of the first listing, and of a burst of events.

``python -m tests.benchmarks.kubernetes.watching [PODS] [NODES]``; by default 50,000 pods of others, 1,000 of ours
and 5,000 nodes. The server is a process of its own, and sends whole pods to whoever does not ask for less.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import psutil

from controlplane.adapters.clusters.kubernetes.api import KubernetesApi
from controlplane.adapters.clusters.kubernetes.kubeconfig import ApiAccess
from controlplane.adapters.clusters.kubernetes.object_names import LAUNCH
from controlplane.adapters.clusters.kubernetes.watcher import Watcher

OURS, BURST = 1_000, 10_000
WITHIN = 300.0


def metadata(name: str, *, version: int, launch: str = "") -> dict[str, Any]:
    """As long as a real one, with what managed fields add."""
    fields: dict[str, dict[str, dict[str, str]]] = {
        f"f:{part}": {f"f:{number}": {} for number in range(6)}
        for part in ("spec", "status", "labels")
    }
    return {
        "name": name,
        "namespace": "team",
        "uid": f"{version:032x}",
        "resourceVersion": str(version),
        "creationTimestamp": "2026-11-21T20:00:00Z",
        "labels": {
            "app": name,
            "pod-template-hash": "5d4f8c7b9",
            **({LAUNCH: launch} if launch else {}),
        },
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "u"}
        ],
        "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": fields}] * 2,
    }


def pod(name: str, *, version: int, launch: str = "") -> dict[str, Any]:
    variables = [{"name": f"VARIABLE_{number}", "value": "x" * 40} for number in range(20)]
    mounts = [{"name": f"volume-{number}", "mountPath": f"/mnt/{number}"} for number in range(8)]
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": "2026-11-21T20:00:00Z"}
        for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    return {
        "metadata": metadata(name, version=version, launch=launch),
        "spec": {
            "nodeName": "n",
            "containers": [{"name": "main", "env": variables, "volumeMounts": mounts}],
        },
        "status": {"phase": "Running", "conditions": conditions, "podIP": "10.0.0.1"},
    }


def node(name: str, *, version: int) -> dict[str, Any]:
    labels = {f"feature.node.kubernetes.io/cpu-{number}": "true" for number in range(60)}
    images = [{"names": ["registry/image@sha256:" + "0" * 64], "sizeBytes": 1} for _ in range(50)]
    amounts = {"cpu": "128", "memory": "1056Gi", "nvidia.com/gpu": "8"}
    conditions = [
        {"type": kind, "status": "False"} for kind in ("DiskPressure", "MemoryPressure", "Ready")
    ]
    return {
        "metadata": {**metadata(name, version=version), "labels": labels},
        "spec": {},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": conditions,
            "images": images,
        },
    }


def serve(connection: Connection, pods: int, nodes: int) -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            pass

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = dict(parse_qsl(parts.query))
            whole = "PartialObjectMetadata" not in self.headers["Accept"]
            ours = "!=" not in query.get("labelSelector", "!=")
            if "watch" in query:
                self._watch(ours=ours)
            elif parts.path.endswith("/nodes"):
                self._page(query, nodes, lambda at: node(f"node-{at}", version=at))
            else:
                make = pod if whole else self._partial
                count = OURS if ours else pods
                self._page(
                    query,
                    count,
                    lambda at: make(
                        f"pod-{at}", version=at, launch=f"attempt-{at}" if ours else ""
                    ),
                )

        def _partial(self, name: str, *, version: int, launch: str = "") -> dict[str, Any]:
            return {"metadata": metadata(name, version=version, launch=launch)}

        def _page(self, query: dict[str, str], count: int, make: Any) -> None:
            first = int(query.get("continue") or 0)
            last = min(count, first + int(query["limit"]))
            about = {"resourceVersion": "1", "continue": str(last) if last < count else ""}
            body = json.dumps(
                {"metadata": about, "items": [make(at) for at in range(first, last)]}
            ).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _watch(self, *, ours: bool) -> None:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for line in self._burst() if ours else ():
                self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
            time.sleep(WITHIN)

        def _burst(self) -> Iterator[bytes]:
            for number in range(BURST):
                thing = self._partial("pod", version=number + 2, launch=f"attempt-{number % OURS}")
                yield json.dumps({"type": "MODIFIED", "object": thing}).encode() + b"\n"

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        connection.send(server.server_address[1])
        server.serve_forever()


def main(pods: int = 50_000, nodes: int = 5_000) -> int:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=serve, args=(there, pods, nodes), daemon=True)
    server.start()
    access = ApiAccess(server=f"http://127.0.0.1:{here.recv()}", token="t")
    watcher = Watcher(KubernetesApi(access), installation="east")
    stopping, seen = threading.Event(), set[str]()

    def watch() -> None:
        watcher.watch(
            launches_changed=seen.update,
            nodes_changed=lambda: None,
            alive=lambda: None,
            stopping=stopping,
        )

    me = psutil.Process()
    before, began, spent = me.memory_info().rss, time.monotonic(), sum(me.cpu_times()[:2])
    thread = threading.Thread(target=watch)
    thread.start()
    peak = before
    while not all(one.watches for one in watcher.state()) or watcher.state()[0].events < BURST:
        peak = max(peak, me.memory_info().rss)
        assert time.monotonic() - began < WITHIN, watcher.state()
        time.sleep(0.01)
    took, cost = time.monotonic() - began, sum(me.cpu_times()[:2]) - spent
    after = me.memory_info().rss
    stopping.set()
    thread.join()
    server.terminate()
    server.join()
    mib = 1 << 20
    print(f"{pods} pods of others, {OURS} of ours, {nodes} nodes, then {BURST} events")
    print(f"  {took:.1f} s, {cost:.1f} s of CPU; {len(seen)} names")
    print(
        f"  RSS {before / mib:.0f} MiB before, {peak / mib:.0f} MiB at most, {after / mib:.0f} MiB after"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in sys.argv[1:])))
