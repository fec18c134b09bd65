"""Queue trees in few words, and an admission that refuses what Volcano's does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from controlplane.adapters.clusters.volcano import object_names, queues
from controlplane.adapters.clusters.volcano.object_sync import ChangeAction, ObjectChange
from controlplane.domain.quotas.queue_documents import QueueDocument
from controlplane.domain.quotas.queues import ChipQuota

OURS = "0123456789abcdef0123456789abcdef"
B3, B2, H800 = "ascend-910b3", "ascend-910b2", "nvidia-h800"
NPU, GPU = "huawei.com/Ascend910", "nvidia.com/gpu"
RESOURCES = {B3: NPU, H800: GPU}


def queue(
    name: str,
    *,
    parent: str = "",
    chip: str = B3,
    reserved: int = 0,
    guaranteed: int = 0,
    cap: int | None = None,
    **more: Any,
) -> QueueDocument:
    """Its uid is its name."""
    stated = ChipQuota(reserved=reserved, guaranteed=guaranteed, cap=cap)
    entitlements = more.pop("entitlements", {chip: stated} if stated != ChipQuota() else {})
    return QueueDocument(uid=name, name=name, parent=parent, entitlements=entitlements, **more)


def tree(*documents: QueueDocument) -> Mapping[str, QueueDocument]:
    return {document.uid: document for document in documents}


def called(name: str) -> str:
    return object_names.queue_name(name, installation=OURS)


class Refused(Exception):
    """The admission of the cluster says no."""


def admission_errors(tree: Sequence[Mapping[str, Any]]) -> list[str]:
    """What Volcano's admission refuses of a whole tree (``pkg/webhooks/admission/queues/validate``)."""
    by_name = {one["metadata"]["name"]: one for one in tree}
    found = []
    for name, one in by_name.items():
        guarantee, deserved, capability = (
            queues.queue_amounts(one, word) for word in ("guarantee", "deserved", "capability")
        )
        above = ancestors(one, by_name)
        if above is None or len(above) >= queues.MAX_DEPTH:
            found.append(f"{name} has no parent, is in a circle, or lies too deep")
            continue
        found += [f"{name} {r}" for r in guarantee if guarantee[r] > deserved.get(r, 0)]
        found += [f"{name} {r}" for r in deserved if deserved[r] > capability.get(r, deserved[r])]
        caps = [queues.queue_amounts(each, "capability") for each in above]
        found += [
            f"{name} {r}" for r in capability for cap in caps if capability[r] > cap.get(r, 1 << 30)
        ]
        children = [each for each in tree if queues.parent_name(each) == name]
        for word, own in (("guarantee", guarantee), ("deserved", deserved)):
            sums = Counter[str]()
            for child in children:
                sums.update(queues.queue_amounts(child, word))
            found += [f"{name} {word} {r}" for r in sums if sums[r] > own.get(r, 0)]
    return found


def ancestors(
    queue: Mapping[str, Any], by_name: Mapping[str, Mapping[str, Any]]
) -> list[Mapping[str, Any]] | None:
    """Those above it, the nearest first; None where there is no way to the root."""
    found: list[Mapping[str, Any]] = []
    while (above := queues.parent_name(queue)) != object_names.ROOT:
        if above not in by_name or by_name[above] in found:
            return None
        queue = by_name[above]
        found.append(queue)
    return found


class Cluster:
    """Queues of a cluster, each change admitted by Volcano's rules or refused."""

    def __init__(self, queues: Sequence[Mapping[str, Any]] = ()) -> None:
        self.queues: dict[str, dict[str, Any]] = {
            one["metadata"]["name"]: dict(one) for one in queues
        }
        self.commands: list[str] = []

    def apply(self, changes: Sequence[ObjectChange]) -> None:
        for change in changes:
            manifest = change.manifest
            name = manifest["metadata"]["name"]
            if change.action is ChangeAction.COMMAND:
                self.commands.append(f"{manifest['action']} {manifest['target']['name']}")
                continue
            if change.action is ChangeAction.DELETE:
                children = sum(queues.parent_name(one) == name for one in self.queues.values())
                if refusal := queues.deletion_blocker(self.queues[name], children=children):
                    raise Refused(refusal)
                del self.queues[name]
                continue
            stored = self.queues.get(name, {"status": {"state": "Open"}})
            self.queues[name] = {**stored, **manifest}
            if wrong := admission_errors(list(self.queues.values())):
                raise Refused("; ".join(wrong))
