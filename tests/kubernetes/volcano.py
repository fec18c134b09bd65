"""A stand-in for Volcano's controllers and scheduler, over the real API server.

It keeps their contract with us and none of their cleverness: Jobs become PodGroups and pods, a queue admits up to
its capability, a gang is bound to the one node, policies and commands are followed. What Volcano itself would
choose is not tested here.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import requests
import yaml

from tests.contract.waiting import until
from tests.kubernetes.control_planes import ControlPlane

#: As published, but for what an old API server does not take.
CRDS = Path(__file__).resolve().parents[3] / "shared" / "crds" / "volcano-for-1.20"
KINDS = ("jobs", "commands", "podgroups", "queues", "hypernodes")
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BATCH = "/apis/batch.volcano.sh/v1alpha1"
SCHEDULING = "/apis/scheduling.volcano.sh/v1beta1"
BUS = "/apis/bus.volcano.sh/v1alpha1"
TOPOLOGY = "/apis/topology.volcano.sh/v1alpha1"
_EVERY = 0.2
_MERGE = "application/merge-patch+json"
_OVER = ("Completed", "Aborted", "Terminated", "Failed")
_LIVES = ("Pending", "Running")

Object = Mapping[str, Any]


def present() -> bool:
    """Whether a copy of Volcano's CRDs lies beside the project."""
    return CRDS.is_dir()


class StandIn:
    """Runs in a thread of its own between ``start`` and ``stop``."""

    def __init__(self, plane: ControlPlane, *, node: str) -> None:
        self._plane, self._node = plane, node
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="volcano")
        #: Why the loop broke, to be told by ``stop``.
        self._failure: Exception | None = None

    def start(self) -> None:
        for file in sorted(CRDS.glob("*.yaml")):
            definition = yaml.load(file.read_text("utf-8"), Loader=yaml.CSafeLoader)
            if definition["spec"]["names"]["plural"] in KINDS:
                self._send("POST", _DEFINITIONS, definition)
        for path in (f"{BATCH}/jobs", f"{BUS}/commands", f"{TOPOLOGY}/hypernodes"):
            until(partial(self._served, path), what=f"{path} is served")
        root: Object = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "spec": {"weight": 1},
        }
        for path in (f"{SCHEDULING}/queues", f"{SCHEDULING}/podgroups"):
            until(partial(self._served, path), what=f"{path} is served")
        for name in ("root", "default"):
            self._send("POST", f"{SCHEDULING}/queues", {**root, "metadata": {"name": name}})
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(timeout=30)
        for definition in self._listed(_DEFINITIONS) or ():
            if definition["spec"]["group"].endswith(".volcano.sh"):
                self._plane.request("DELETE", f"{_DEFINITIONS}/{definition['metadata']['name']}")
        if self._failure is not None:
            raise self._failure

    def evict(self, job: str, *, namespace: str) -> None:
        """Take one pod of the gang away, as the scheduler's eviction does."""
        metadata = self._pods(namespace, job)[0]["metadata"]
        name, reason = metadata["name"], "Pod is evicted, because of reclaim"
        event = {
            "metadata": {"generateName": f"{name}-"},
            "involvedObject": {"kind": "Pod", "namespace": namespace, "name": name},
            "reason": "Evict",
            "type": "Warning",
            "message": reason,
        }
        self._send("POST", f"/api/v1/namespaces/{namespace}/events", event)
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
        }
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        body = {"status": {"conditions": [condition]}}
        kind = "application/strategic-merge-patch+json"
        self._send("PATCH", f"{path}/status", body, kind=kind)
        self._send("DELETE", path)

    def get(self, path: str) -> dict[str, Any]:
        answer: dict[str, Any] = self._plane.request("GET", path).json()
        return answer

    # -- The loop --

    def _run(self) -> None:
        while not self._stopping.wait(_EVERY):
            try:
                self._commands()
                queues = self._queues()
                for job in self._listed(f"{BATCH}/jobs") or ():
                    self._job(job, queues)
                for group in self._listed(f"{SCHEDULING}/podgroups") or ():
                    self._group(group, queues)
            except requests.RequestException:
                continue
            except Exception as trouble:  # noqa: BLE001 - the thread's end has to be told to the test
                self._failure = trouble
                return

    def _commands(self) -> None:
        for command in self._listed(f"{BUS}/commands") or ():
            metadata, target = command["metadata"], command["target"]
            space = metadata["namespace"]
            self._plane.request("DELETE", f"{BUS}/namespaces/{space}/commands/{metadata['name']}")
            if command["action"] in ("OpenQueue", "CloseQueue"):
                state = "Open" if command["action"] == "OpenQueue" else "Closed"
                self._status(f"{SCHEDULING}/queues/{target['name']}", {"state": state})
            elif command["action"] == "AbortJob":
                job = self._plane.request(
                    "GET", f"{BATCH}/namespaces/{space}/jobs/{target['name']}"
                )
                if job.ok and _phase(job.json()) not in _OVER:
                    self._phase(job.json(), "Aborting")

    def _queues(self) -> dict[str, dict[str, Any]]:
        """Each with what its PodGroups hold, which is written to its status."""
        held: dict[str, Counter[str]] = {}
        for group in self._listed(f"{SCHEDULING}/podgroups") or ():
            if (group.get("status") or {}).get("phase") in ("Inqueue", "Running"):
                held.setdefault(group["spec"]["queue"], Counter()).update(_wanted(group))
        found = {}
        for queue in self._listed(f"{SCHEDULING}/queues") or ():
            name, status = queue["metadata"]["name"], queue.get("status") or {}
            allocated = {each: str(n) for each, n in held.get(name, Counter()).items()}
            if not status.get("state") or status.get("allocated", {}) != allocated:
                new = {"state": status.get("state") or "Open", "allocated": allocated}
                self._status(f"{SCHEDULING}/queues/{name}", {"allocated": None})
                self._status(f"{SCHEDULING}/queues/{name}", new)
                status = new
            found[name] = {**queue, "status": status}
        return found

    def _job(self, job: Object, queues: Mapping[str, dict[str, Any]]) -> None:
        metadata, phase = job["metadata"], _phase(job)
        space, name = metadata["namespace"], metadata["name"]
        if metadata.get("deletionTimestamp") or phase in _OVER:
            return
        group = f"{name}-{metadata['uid']}"
        path = f"{SCHEDULING}/namespaces/{space}/podgroups/{group}"
        pods = {pod["metadata"]["name"]: pod for pod in self._pods(space, name)}
        if phase in ("Aborting", "Terminating"):
            self._end(job, pods, path)
            return
        if not phase:
            self._send("POST", path.rpartition("/")[0], _group_of(job, name=group))
            self._phase(job, "Pending")
            return
        answer = self._plane.request("GET", path)
        if not answer.ok:
            return
        admitted = answer.json().get("status", {}).get("phase") == "Inqueue"
        if phase == "Pending" and admitted:
            self._make(job, group)
            self._phase(job, "Running")
        elif phase == "Running":
            self._follow(job, pods, path)

    def _follow(self, job: Object, pods: Mapping[str, Object], group: str) -> None:
        """The first policy that applies; a pod that is missing, or asked to go, was taken away.

        So Volcano's job controller has it: how a pod ends that was deleted no longer counts.
        """
        wanted = sum(task["replicas"] for task in job["spec"]["tasks"])
        running = [pod for pod in pods.values() if not pod["metadata"].get("deletionTimestamp")]
        phases = Counter(pod["status"]["phase"] for pod in running)
        policies = {each["event"]: each["action"] for each in job["spec"]["policies"]}
        ending = {"AbortJob": "Aborting", "TerminateJob": "Terminating"}
        if len(running) < wanted:
            self._phase(job, ending[policies["PodEvicted"]], message="a pod was evicted")
        elif phases["Failed"]:
            self._phase(job, ending[policies["PodFailed"]], message="a pod failed")
        elif phases["Succeeded"] == wanted:
            self._plane.request("DELETE", group)
            self._phase(job, "Completed")

    def _end(self, job: Object, pods: Mapping[str, Object], group: str) -> None:
        """Pods that have ended stay, as they do with Volcano."""
        alive = [pod for pod in pods.values() if pod["status"]["phase"] in _LIVES]
        for pod in alive:
            if not pod["metadata"].get("deletionTimestamp"):
                self._send(
                    "DELETE",
                    f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}",
                )
        if not alive:
            self._plane.request("DELETE", group)
            self._phase(job, "Aborted" if _phase(job) == "Aborting" else "Terminated")

    def _make(self, job: Object, group: str) -> None:
        path = f"/api/v1/namespaces/{job['metadata']['namespace']}/pods"
        for task in job["spec"]["tasks"]:
            for index in range(task["replicas"]):
                self._send("POST", path, _pod(job, task, index, group=group))

    def _group(self, group: Object, queues: Mapping[str, dict[str, Any]]) -> None:
        """Let it in where its queue has room; bind the pods of one that we made ourselves."""
        metadata, status = group["metadata"], group.get("status") or {}
        space = metadata["namespace"]
        path = f"{SCHEDULING}/namespaces/{space}/podgroups/{metadata['name']}"
        queue = queues.get(group["spec"]["queue"])
        if queue is None:
            # It was made after this turn looked: the next one sees it.
            return
        if status.get("phase") not in ("Inqueue", "Running", "Completed"):
            caps = queue["spec"].get("capability") or {}
            held = queue["status"].get("allocated") or {}
            fits = all(
                int(held.get(each, 0)) + number <= int(caps[each])
                for each, number in _wanted(group).items()
                if each in caps
            )
            admitted = fits and queue["status"]["state"] == "Open"
            new = {"phase": "Inqueue" if admitted else "Pending"}
            self._send("PATCH", path, {"status": new}, kind=_MERGE)
            # What it holds counts before the next one asks.
            if admitted:
                both = Counter({each: int(n) for each, n in held.items()}) + _wanted(group)
                queue["status"]["allocated"] = dict(both)
            return
        pods = self._listed(f"/api/v1/namespaces/{space}/pods") or ()
        ours = [
            pod
            for pod in pods
            if pod["metadata"].get("annotations", {}).get("scheduling.k8s.io/group-name")
            == metadata["name"]
        ]
        unbound = [pod for pod in ours if not pod["spec"].get("nodeName")]
        if len(ours) >= group["spec"]["minMember"]:
            for pod in unbound:
                self._bind(space, pod["metadata"]["name"])

    def _bind(self, namespace: str, pod: str) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod},
            "target": {"apiVersion": "v1", "kind": "Node", "name": self._node},
        }
        self._send("POST", f"/api/v1/namespaces/{namespace}/pods/{pod}/binding", body)

    # -- The API --

    def _pods(self, namespace: str, job: str) -> list[dict[str, Any]]:
        path = f"/api/v1/namespaces/{namespace}/pods?labelSelector=volcano.sh/job-name={job}"
        return self._listed(path) or []

    def _phase(self, job: Object, phase: str, *, message: str = "") -> None:
        metadata = job["metadata"]
        state = {"phase": phase, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        state |= {"message": message} if message else {}
        path = f"{BATCH}/namespaces/{metadata['namespace']}/jobs/{metadata['name']}"
        self._status(path, {"state": state})

    def _status(self, path: str, status: Object) -> None:
        self._send("PATCH", f"{path}/status", {"status": status}, kind=_MERGE)

    def _served(self, path: str) -> bool:
        return self._plane.request("GET", path).ok

    def _listed(self, path: str) -> list[dict[str, Any]] | None:
        answer = self._plane.request("GET", path)
        return answer.json()["items"] if answer.ok else None

    def _send(
        self, method: str, path: str, body: object = None, *, kind: str = "application/json"
    ) -> None:
        """What is there already, or gone meanwhile, is as it shall be."""
        answer = self._plane.request(method, path, body=body, kind=kind)
        assert answer.ok or answer.status_code in (404, 409), answer.text


def _phase(job: Object) -> str:
    return str(((job.get("status") or {}).get("state") or {}).get("phase") or "")


def _wanted(group: Object) -> Counter[str]:
    """Cards that it asks for."""
    wanted = group["spec"].get("minResources") or {}
    return Counter({each: int(number) for each, number in wanted.items() if "/" in each})


def _group_of(job: Object, *, name: str) -> dict[str, Any]:
    metadata, spec = job["metadata"], job["spec"]
    wanted: Counter[str] = Counter()
    for task in spec["tasks"]:
        (container,) = task["template"]["spec"]["containers"]
        for resource, amount in container["resources"].get("requests", {}).items():
            if "/" in resource:
                wanted[resource] += int(amount) * task["replicas"]
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": metadata["labels"],
            "ownerReferences": [_owner(job)],
        },
        "spec": {
            "minMember": spec["minAvailable"],
            "queue": spec["queue"],
            "minResources": {resource: str(amount) for resource, amount in wanted.items()},
        },
    }


def _pod(job: Object, task: Object, index: int, *, group: str) -> dict[str, Any]:
    """As the job controller and its plug-in ``svc`` make it; finalizers of a template are not copied."""
    name = f"{job['metadata']['name']}-{task['name']}-{index}"
    said = {
        "volcano.sh/task-index": str(index),
        "volcano.sh/task-spec": task["name"],
        "volcano.sh/job-name": job["metadata"]["name"],
    }
    template = task["template"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {**template["metadata"]["labels"], **said},
            "annotations": {
                **template["metadata"]["annotations"],
                **said,
                "scheduling.k8s.io/group-name": group,
            },
            "ownerReferences": [_owner(job)],
        },
        "spec": {"hostname": name, "subdomain": job["metadata"]["name"], **template["spec"]},
    }


def _owner(job: Object) -> dict[str, Any]:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
