"""A Launch by its objects: which pods are its own, what its record says, whose silence has to be looked into."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controlplane.adapters.clusters.kubernetes import names
from controlplane.adapters.clusters.kubernetes.plans import RECORD
from controlplane.adapters.clusters.kubernetes.replicas import (
    CONFIRMED_WITHIN,
    Pod,
    container_of,
    instant,
    replica_of,
)
from controlplane.ports.clusters import ExitCause, ObservedLaunch, ObservedReplica, Phase

Object = Mapping[str, Any]

#: The taint by which an administrator says that a machine is switched off for certain.
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A Launch as its objects tell it."""

    launch: ObservedLaunch
    namespace: str
    pods: Sequence[Pod]
    #: Role → port's name → number.
    ports: Mapping[str, Mapping[str, int]]
    #: In whose folder its checkpoints lie.
    checkpoints: str
    #: Until when it may save, if it was asked to stop.
    stop_by: datetime | None

    def pod(self, role: str, index: int) -> Pod | None:
        return next((pod for pod in self.pods if _place(pod) == (role, index)), None)

    def replica(self, role: str, index: int) -> ObservedReplica:
        return next(
            each for each in self.launch.replicas if (each.role, each.index) == (role, index)
        )


def last_words(pod: Pod) -> str:
    """What it kept of the end of its output, where it ended badly; empty if nothing."""
    ended = (container_of(pod.get("status") or {}).get("state") or {}).get("terminated") or {}
    return str(ended.get("message") or "")


def pod_path(pod: Pod) -> str:
    """Its address in the API."""
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def log_key(pod: Pod) -> str:
    """Under which its Launch's record keeps its log."""
    role, index = _place(pod)
    return f"log.{role}-{index}"


def observed(
    name: str,
    pods: Sequence[Pod],
    *,
    record: Object | None,
    gone: frozenset[str],
    at: datetime,
) -> Found:
    """The Launch by its pods, each of which bears what its record says.

    ``record`` is needed where pods are missing; without it the Launch is taken for one that was made whole.
    ``gone``: nodes that are no more, or fenced.
    """
    kept = _kept(pods, record)
    by_place = {_place(pod): pod for pod in pods}
    stop_by = _stop_by((record, *pods))
    whole = record is None or names.LAUNCHED in (record["metadata"].get("annotations") or {})
    replicas = []
    for role, count in kept["roles"].items():
        for index in range(count):
            pod = by_place.get((role, index))
            if pod is None and not whole:
                replicas.append(
                    _not_made(role, index, stopped=stop_by is not None, refused=_refused(record))
                )
                continue
            node = "" if pod is None else str((pod.get("spec") or {}).get("nodeName") or "")
            replicas.append(
                replica_of(
                    pod,
                    role=role,
                    index=index,
                    probed=role in kept["probed"],
                    node_gone=node in gone,
                    at=at,
                )
            )
    return Found(
        launch=ObservedLaunch(name=name, replicas=tuple(replicas), labels=kept["labels"]),
        namespace=_namespace((record, *pods)),
        pods=pods,
        ports=kept["ports"],
        checkpoints=kept["checkpoints"],
        stop_by=stop_by,
    )


def checkpoints_of(record: Object) -> str:
    """In whose folder the Launch's checkpoints lie."""
    return str(_kept((), record)["checkpoints"])


def is_genuine(pod: Pod, *, prefix: str) -> bool:
    """Whether it is what we, or a controller for us, made of a Launch: labels alone anybody can write."""
    metadata = pod["metadata"]
    owners = {owner.get("name") for owner in metadata.get("ownerReferences") or ()}
    labels = metadata.get("labels") or {}
    return (
        str(metadata["namespace"]).startswith(f"{prefix}-")
        and labels.get(names.LAUNCH) in owners
        and names.RECORD in (metadata.get("annotations") or {})
    )


def places_of(record: Object) -> Sequence[tuple[str, int]]:
    """Role and index of every replica."""
    roles = _kept((), record)["roles"]
    return [(role, index) for role, count in roles.items() for index in range(count)]


def all_there(pods: Sequence[Pod]) -> bool:
    """Whether these are the pods of every replica: then the record has nothing to add."""
    return bool(pods) and len(pods) == sum(_kept(pods, None)["roles"].values())


def doubtful(pod: Pod, *, at: datetime) -> bool:
    """Whether its node should be looked at: the pod should be gone by now, or its node went silent."""
    status, metadata = pod.get("status") or {}, pod["metadata"]
    if not (pod.get("spec") or {}).get("nodeName"):
        return False
    if "terminated" in (container_of(status).get("state") or {}):
        return False
    deleted = instant(metadata.get("deletionTimestamp"))
    if deleted is not None and at > deleted + CONFIRMED_WITHIN:
        return True
    return status.get("reason") == "NodeLost" or any(
        condition.get("type") == "Ready" and condition.get("reason") in ("NodeNotReady", "NodeLost")
        for condition in status.get("conditions") or ()
    )


def fenced(node: Object | None) -> bool:
    """Whether nothing runs on it for certain: it is no more, or an administrator says that it is off."""
    if node is None:
        return True
    taints = (node.get("spec") or {}).get("taints") or ()
    return any(taint.get("key") == OUT_OF_SERVICE for taint in taints)


def _kept(pods: Sequence[Pod], record: Object | None) -> Mapping[str, Any]:
    text = (
        record["data"][RECORD]
        if record is not None
        else pods[0]["metadata"]["annotations"][names.RECORD]
    )
    kept: Mapping[str, Any] = json.loads(text)
    return kept


def _place(pod: Pod) -> tuple[str, int]:
    labels = pod["metadata"]["labels"]
    return labels[names.ROLE], int(labels[names.INDEX])


def _stop_by(things: Sequence[Object | None]) -> datetime | None:
    for thing in things:
        said = ((thing or {"metadata": {}})["metadata"].get("annotations") or {}).get(names.STOP_BY)
        if said:
            return datetime.fromisoformat(said)
    return None


def _namespace(things: Sequence[Object | None]) -> str:
    return next(str(thing["metadata"]["namespace"]) for thing in things if thing is not None)


def _refused(record: Object | None) -> str:
    """Why its pods were not all made; empty if nothing kept them from it."""
    metadata: Mapping[str, Any] = {} if record is None else record["metadata"]
    return str((metadata.get("annotations") or {}).get(names.REFUSED, ""))


def _not_made(role: str, index: int, *, stopped: bool, refused: str) -> ObservedReplica:
    if stopped:
        return ObservedReplica(
            role=role,
            index=index,
            phase=Phase.EXITED,
            cause=ExitCause.NOT_PREPARED if refused else ExitCause.STOPPED,
            message=refused or "stopped before it started",
        )
    return ObservedReplica(role=role, index=index, phase=Phase.PREPARING, message="starting")
