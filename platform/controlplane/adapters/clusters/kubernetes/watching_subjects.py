"""What is followed on a cluster, and which of its news count.

Three things, because each says something else at a different price::

    our pods       only who they are       every event marks its Launch
    nodes          whole                   labels, taints, resources and conditions count; heartbeats do not
    others' pods   only who they are,      counts when one gets a node or gives it back
                   those that hold a node

Each remembers no more than it needs to tell what a new listing means: names of Launches, a digest of each node.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final, Protocol

from controlplane.adapters.clusters.kubernetes import names
from controlplane.adapters.clusters.kubernetes.watching_rules import Marks

Object = Mapping[str, Any]

#: A pod that has no node yet, or has ended, holds nothing.
_HOLDS_A_NODE = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
_DIGEST_BYTES: Final = 8


class Subject(Protocol):
    """One kind of object, and what of it is remembered."""

    name: str
    path: str
    query: Mapping[str, str]
    metadata_only: bool

    def listing_begins(self) -> None:
        """Forget what an earlier attempt at this listing said."""
        ...

    def listed(self, item: Object) -> None: ...

    def listing_ends(self) -> None:
        """Everything was listed: mark what may have changed since the last listing, what is gone included."""
        ...

    def changed(self, kind: str, item: Object) -> None:
        """``kind`` is ``ADDED``, ``MODIFIED`` or ``DELETED``."""
        ...


class OurPods:
    """Pods of our Launches."""

    name = "our pods"
    path = "/api/v1/pods"
    metadata_only = True

    def __init__(self, *, installation: str, marks: Marks) -> None:
        self.query: Mapping[str, str] = {
            "labelSelector": names.selector(names.marks(installation=installation))
        }
        self._marks = marks
        self._known: set[str] = set()
        self._seen: set[str] = set()

    def listing_begins(self) -> None:
        self._seen = set()

    def listed(self, item: Object) -> None:
        self._seen.update(_launch_of(item))

    def listing_ends(self) -> None:
        self._marks.launches(self._known | self._seen)
        self._known, self._seen = self._seen, set()

    def changed(self, kind: str, item: Object) -> None:
        launch = _launch_of(item)
        # One that is gone stays known until a listing lacks it: it may have other pods.
        self._known.update(launch)
        self._marks.launches(launch)


def _launch_of(pod: Object) -> tuple[str, ...]:
    """The name of its Launch; none if it has none."""
    launch = (pod["metadata"].get("labels") or {}).get(names.LAUNCH, "")
    return (str(launch),) if launch else ()


class Nodes:
    name = "nodes"
    path = "/api/v1/nodes"
    metadata_only = False

    def __init__(self, *, marks: Marks) -> None:
        self.query: Mapping[str, str] = {}
        self._marks = marks
        self._known: dict[str, bytes] = {}
        self._seen: dict[str, bytes] = {}

    def listing_begins(self) -> None:
        self._seen = {}

    def listed(self, item: Object) -> None:
        self._seen[item["metadata"]["name"]] = node_digest(item)

    def listing_ends(self) -> None:
        if self._seen != self._known:
            self._marks.nodes()
        self._known, self._seen = self._seen, {}

    def changed(self, kind: str, item: Object) -> None:
        name = item["metadata"]["name"]
        digest = None if kind == "DELETED" else node_digest(item)
        if digest == self._known.get(name):
            return
        if digest is None:
            del self._known[name]
        else:
            self._known[name] = digest
        self._marks.nodes()


def node_digest(node: Object) -> bytes:
    """The same for two states of a node that mean the same to us: neither heartbeats nor versions count."""
    metadata, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
    conditions = sorted(
        (str(one.get("type")), str(one.get("status"))) for one in status.get("conditions") or ()
    )
    told = [
        metadata.get("uid"),
        metadata.get("labels"),
        metadata.get("annotations"),
        metadata.get("deletionTimestamp"),
        spec.get("unschedulable"),
        spec.get("taints"),
        status.get("allocatable"),
        status.get("capacity"),
        conditions,
    ]
    text = json.dumps(told, sort_keys=True).encode()
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest()


class OthersPods:
    """Pods that hold something of a node and are none of ours."""

    name = "others' pods"
    path = "/api/v1/pods"
    metadata_only = True

    def __init__(self, *, installation: str, marks: Marks) -> None:
        self.query: Mapping[str, str] = {
            # Which those without any label match, too.
            "labelSelector": f"{names.INSTALLATION}!={installation}",
            "fieldSelector": _HOLDS_A_NODE,
        }
        self._marks = marks

    def listing_begins(self) -> None:
        """Nothing is remembered."""

    def listed(self, item: Object) -> None:
        """What it means is asked of the cluster later, for all of them at once."""

    def listing_ends(self) -> None:
        self._marks.nodes()

    def changed(self, kind: str, item: Object) -> None:
        # The selector makes an end of what was given a node an ADDED, and of what gave it back a DELETED.
        if kind != "MODIFIED":
            self._marks.nodes()
