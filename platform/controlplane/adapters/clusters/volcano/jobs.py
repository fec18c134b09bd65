"""The objects that Volcano schedules as a gang, for a Launch: pure functions from dicts to dicts.

::

    workload that ends       ─▶ Job         one task per role; Volcano creates the pods, with the names of ours
    workload with a probe    ─▶ PodGroup    with pods that we create: a serving replica has no end to wait for

The placement in a Launch is only a forecast here: the number of replicas and the cards of each are taken from
it, and Volcano chooses nodes and devices.

Policies of a Job: ``PodEvicted → AbortJob``, because a gang that lost a member would wait for ever, and so that
only Ninefold starts it again; ``PodFailed → TerminateJob`` and not AbortJob as well, so that the Job's phase
alone tells an eviction from a failure, even when no pod is left. Both keep ended pods.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from controlplane.adapters.clusters.kubernetes import manifests
from controlplane.adapters.clusters.kubernetes import object_names as marking
from controlplane.adapters.clusters.kubernetes.api import Manifest, api_object
from controlplane.adapters.clusters.kubernetes.launch_plans import LaunchPlan, PlannedReplica
from controlplane.adapters.clusters.volcano import object_names
from controlplane.ports.clusters import LaunchRefused
from controlplane.ports.launches import Launch, LaunchRole

#: Volcano counts restarts and fails a Job at this many; 3 by default. Restarts are counted by the product.
MANY_RETRIES: Final = 1000
#: The variable in which a pod finds its place: a task has one template for all.
INDEX_VARIABLE: Final = "NINEFOLD_INDEX"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingTarget:
    """In which queue, how urgent and how close together a Launch is to run."""

    #: Name of the Queue.
    queue: str
    #: Name of the PriorityClass; empty for the cluster's default.
    priority: str = ""
    #: All of it below one HyperNode of this tier or a tighter one; None: anywhere.
    tier: int | None = None

    def constraints(self) -> Manifest:
        """Constraints of both a Job and a PodGroup, in addition to the queue."""
        found: Manifest = {"priorityClassName": self.priority} if self.priority else {}
        if self.tier is not None:
            found["networkTopology"] = {"mode": "hard", "highestTierAllowed": self.tier}
        return found


def is_service_launch(launch: Launch) -> bool:
    """Whether it runs until it is stopped."""
    return any(role.probe is not None for role in launch.roles)


def job_manifest(plan: LaunchPlan, target: SchedulingTarget, *, owner: Manifest) -> Manifest:
    """:raises LaunchRefused: if replicas of one role request different numbers of cards."""
    spec: Manifest = {
        "schedulerName": object_names.SCHEDULER,
        "queue": target.queue,
        "minAvailable": plan.size,
        "maxRetry": MANY_RETRIES,
        "plugins": {
            # Gives pods their host names; the Service and the network policy are created separately.
            "svc": ["--publish-not-ready-addresses=true", "--disable-network-policy=true"]
        },
        "policies": [
            {"event": "PodEvicted", "action": "AbortJob"},
            {"event": "PodFailed", "action": "TerminateJob"},
        ],
        "tasks": [
            {
                "name": role.name,
                "replicas": len(role.placements),
                "minAvailable": len(role.placements),
                "template": _pod_template(plan, role, target),
            }
            for role in plan.launch.roles
        ],
        **target.constraints(),
    }
    return api_object("Job", _job_metadata(plan, owner), version=object_names.JOBS, spec=spec)


def pod_group(plan: LaunchPlan, target: SchedulingTarget, *, owner: Manifest) -> Manifest:
    spec: Manifest = {
        "minMember": plan.size,
        "queue": target.queue,
        "minResources": _total_resources(plan),
        **target.constraints(),
    }
    metadata = _job_metadata(plan, owner)
    return api_object("PodGroup", metadata, version=object_names.QUEUES, spec=spec)


def member_pod_manifest(
    plan: LaunchPlan,
    role: LaunchRole,
    replica: PlannedReplica,
    target: SchedulingTarget,
    *,
    owner: Manifest,
) -> Manifest:
    created = manifests.pod_manifest(plan, role, replica, owner=owner)
    created["metadata"]["annotations"][object_names.GROUP] = plan.launch.name
    return {**created, "spec": _with_scheduling_target(plan, created["spec"], target)}


def _pod_template(plan: LaunchPlan, role: LaunchRole, target: SchedulingTarget) -> Manifest:
    replicas = plan.replicas[role.name]
    cards = [sorted(plan.extended_resources(replica).items()) for replica in replicas]
    requested = {", ".join(f"{count} × {name}" for name, count in each) for each in cards}
    if len(requested) > 1:
        described = "; ".join(sorted(each or "0" for each in requested))
        raise LaunchRefused(
            "volcano.role.different_resources",
            "the replicas of role {role} of {launch} request different resources ({resources}); "
            "with Volcano, all replicas of a role must request the same: select nodes of one "
            "type, or define a separate role",
            role=repr(role.name),
            launch=plan.launch.name,
            resources=described,
        )
    template = manifests.pod_template(plan, role, replicas[0], index=f"$({INDEX_VARIABLE})")
    # What differs between pods: Volcano sets a label and a host name of its own.
    template["metadata"]["labels"].pop(marking.INDEX)
    template["spec"].pop("hostname")
    for container in template["spec"]["containers"]:
        for variable in container["env"]:
            if variable.get("value") == "":
                # The kubelet treats 0 alike; the API server of Kubernetes 1.20 treats it as null in a custom
                # resource.
                del variable["value"]
        place = {"fieldPath": f"metadata.annotations['{object_names.TASK_INDEX}']"}
        # Before those that refer to it, or they would not be filled.
        container["env"].insert(0, {"name": INDEX_VARIABLE, "valueFrom": {"fieldRef": place}})
    return {**template, "spec": _with_scheduling_target(plan, template["spec"], target)}


def _with_scheduling_target(plan: LaunchPlan, spec: Manifest, target: SchedulingTarget) -> Manifest:
    changed = {**spec, "schedulerName": object_names.SCHEDULER}
    if target.priority:
        changed["priorityClassName"] = target.priority
    if plan.host_network:
        # Ports on the host are the same for all of them.
        apart = {
            "labelSelector": {"matchLabels": {marking.LAUNCH: plan.launch.name}},
            "topologyKey": "kubernetes.io/hostname",
        }
        changed["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
        }
    return changed


def _total_resources(plan: LaunchPlan) -> dict[str, str]:
    cpu = memory = 0
    cards: Counter[str] = Counter()
    for role in plan.launch.roles:
        for replica in plan.replicas[role.name]:
            cpu += role.limits.cpu
            memory += role.limits.memory
            cards.update(plan.extended_resources(replica))
    amounts = {"cpu": f"{cpu}m" if cpu else "", "memory": str(memory or "")}
    amounts |= {resource: str(count) for resource, count in sorted(cards.items())}
    return {resource: amount for resource, amount in amounts.items() if amount}


def _job_metadata(plan: LaunchPlan, owner: Manifest) -> Manifest:
    """Volcano copies labels and annotations of a Job to its PodGroup."""
    metadata = manifests.metadata_with_owner(plan, owner, name=plan.launch.name)
    return {**metadata, "annotations": plan.fill_launch_names(plan.extras.annotations)}
