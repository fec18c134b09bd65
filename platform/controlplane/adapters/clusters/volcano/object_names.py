"""Names of Ninefold's objects of Volcano, and their API paths.

Names derive from uids, so that renaming a queue or a priority class changes nothing on the cluster; the display
name is in an annotation.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from controlplane.adapters.clusters.kubernetes import object_names
from controlplane.adapters.clusters.kubernetes.api import Manifest, Object, api_object

QUEUES: Final = "scheduling.volcano.sh/v1beta1"
JOBS: Final = "batch.volcano.sh/v1alpha1"
COMMANDS: Final = "bus.volcano.sh/v1alpha1"
TOPOLOGY: Final = "topology.volcano.sh/v1alpha1"
PRIORITIES: Final = "scheduling.k8s.io/v1"

SCHEDULER: Final = "volcano"
ROOT: Final = "root"
DEFAULT: Final = "default"
#: Namespace of the commands to queues, which are cluster-scoped.
COMMANDS_OF_QUEUES: Final = "default"

#: Uid of the row that an object represents.
UID: Final = f"{object_names.DOMAIN}/uid"
#: Its display name.
TITLE: Final = f"{object_names.DOMAIN}/title"

#: Label and annotation that Volcano sets on the pods of a Job: the index of the replica in its task.
TASK_INDEX: Final = "volcano.sh/task-index"
#: Annotation by which a pod that we create belongs to a PodGroup.
GROUP: Final = "scheduling.k8s.io/group-name"

_LONGEST: Final = 63


def installation_prefix(installation: str) -> str:
    """What all cluster-wide names of an installation begin with: two may share a cluster."""
    return f"nf-{installation[:8].lower()}"


def queue_name(uid: str, *, installation: str) -> str:
    return f"{installation_prefix(installation)}-{uid}"


def priority_name(value: int, *, installation: str) -> str:
    """By the value: work keeps the number that it was given, whatever becomes of the word for it."""
    sign_letter = "m" if value < 0 else "p"
    return f"{installation_prefix(installation)}-{sign_letter}{abs(value)}"


def hyper_node_name(level: str, domains: tuple[str, ...], *, installation: str) -> str:
    """Domains of one name may lie in several outer ones: all of them, outermost first, make the name."""
    digest = hashlib.sha256("\0".join((level, *domains)).encode()).hexdigest()[:8]
    slug = re.sub(r"[^a-z0-9]+", "-", f"{level}-{domains[-1]}".lower()).strip("-")
    available = _LONGEST - len(installation_prefix(installation)) - len(digest) - 2
    return f"{installation_prefix(installation)}-{slug[:available].rstrip('-')}-{digest}"


def command_manifest(kind: str, metadata: Object, *, action: str) -> Manifest:
    """Commands Volcano to act on a Job or a Queue; Volcano consumes and deletes it. Idempotent."""
    name, of_job = str(metadata["name"]), kind == "Job"
    target = {"apiVersion": JOBS if of_job else QUEUES, "kind": kind, "name": name}
    return api_object(
        "Command",
        {
            "name": f"{name}-{action.removesuffix(kind).lower()}",
            "namespace": metadata.get("namespace", COMMANDS_OF_QUEUES),
            "labels": dict(metadata.get("labels") or {}),
        },
        version=COMMANDS,
        action=action,
        target={**target, "uid": metadata["uid"], "controller": True},
        reason="NinefoldStop" if of_job else "NinefoldQueueState",
    )
