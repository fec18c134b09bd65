"""From a Launch to what Volcano schedules: as on any Kubernetes, but for the pods."""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.adapters.clusters.kubernetes import names as marking
from controlplane.adapters.clusters.kubernetes.api import Api, Object
from controlplane.adapters.clusters.kubernetes.launching import Find, Launcher
from controlplane.adapters.clusters.kubernetes.plans import Plan
from controlplane.adapters.clusters.kubernetes.profiles import Profile
from controlplane.adapters.clusters.kubernetes.topologies import HYPERNODES
from controlplane.adapters.clusters.volcano import jobs, keeping, names, priorities, rules
from controlplane.adapters.clusters.volcano.jobs import Target
from controlplane.adapters.clusters.volcano.names import Manifest
from controlplane.ports.clusters import LaunchRefused
from controlplane.ports.launches import Launch

#: Labels of a Launch: uid of its queue, number of its priority, level of the network that it may not leave.
QUEUE, PRIORITY, WITHIN = "queue", "priority", "within"


class VolcanoLauncher(Launcher):
    def __init__(
        self, api: Api, *, profile: Profile, installation: str, find: Find, queue: str
    ) -> None:
        """:param queue: name of the cluster's queue for Launches that say none."""
        super().__init__(api, profile=profile, installation=installation, find=find)
        self._queue = queue

    def target(self, launch: Launch) -> Target:
        """:raises LaunchRefused: if a label of the Launch cannot be followed here."""
        uid, priority = launch.labels.get(QUEUE, ""), launch.labels.get(PRIORITY, "")
        return Target(
            queue=names.queue_name(uid, installation=self.installation) if uid else self._queue,
            priority=names.priority_name(_number(priority), installation=self.installation)
            if priority
            else "",
            tier=self._tier(launch.labels.get(WITHIN, "")),
        )

    def _ensure_namespace(self, plan: Plan) -> None:
        """What is asked once, before the first object of a Launch."""
        target = self.target(plan.launch)
        rules.check_work(target.queue, self.api.list(keeping.QUEUES).items)
        if target.priority:
            value = plan.launch.labels[PRIORITY]
            manifest = priorities.priority_class(
                _number(value), title=value, installation=self.installation
            )
            keeping.ensure(self.api, manifest)
        super()._ensure_namespace(plan)

    def _owned(self, plan: Plan, record: Object) -> Iterator[tuple[str, Manifest]]:
        target, owner = self.target(plan.launch), dict(record)
        serves = jobs.serves(plan.launch)
        for kind, manifest in super()._owned(plan, record):
            if kind == "pods":
                continue
            selector = manifest.get("spec", {}).get("selector", {})
            if not serves and marking.INDEX in selector:
                # Of the pods that Volcano makes, its own label tells one from the other.
                selector[names.TASK_INDEX] = selector.pop(marking.INDEX)
            yield kind, manifest
        if not serves:
            yield "jobs", jobs.job(plan, target, owner=owner)
            return
        yield "podgroups", jobs.pod_group(plan, target, owner=owner)
        for role in plan.launch.roles:
            for replica in plan.replicas[role.name]:
                yield "pods", jobs.member(plan, role, replica, target, owner=owner)

    def _create(self, path: str, manifest: Object) -> None:
        of_volcano = str(manifest["apiVersion"]) in (names.JOBS, names.QUEUES)
        super()._create(names.collection(manifest) if of_volcano else path, manifest)

    def withdraw(self, namespace: str, name: str, *, grace: int) -> None:
        for version, kind in ((names.JOBS, "jobs"), (names.QUEUES, "podgroups")):
            self.api.delete(f"/apis/{version}/namespaces/{namespace}/{kind}/{name}")
        super().withdraw(namespace, name, grace=grace)

    def _tier(self, level: str) -> int | None:
        if not level:
            return None
        found = [
            each
            for each in self.api.list(HYPERNODES).items
            if each["spec"].get("tierName") == level
        ]
        if not found:
            raise LaunchRefused(
                f"the work has to stay within one {level}, and no HyperNode of the cluster is one: label its "
                "nodes with where they stand, or let the work go anywhere"
            )
        return int(found[0]["spec"]["tier"])


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise LaunchRefused(f"a priority is a whole number, got {text!r}") from None
