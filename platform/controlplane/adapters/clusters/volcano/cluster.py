"""The adapter: Kubernetes whose nodes and devices Volcano chooses.

Ninefold admits, and sets queue, priority and topology constraint; Volcano binds, and it alone reclaims cards. A
gang that was evicted is reported as stopped, and starting it again is a new attempt. A Launch that is pinned to
its nodes needs no cards and no queue: its pods are those of any Kubernetes cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from controlplane.adapters.clusters.kubernetes import inspection
from controlplane.adapters.clusters.kubernetes import object_names as marking
from controlplane.adapters.clusters.kubernetes.api import (
    ApiRefused,
    Manifest,
    Object,
    labels_of,
    nested_field,
    object_name,
)
from controlplane.adapters.clusters.kubernetes.cluster import KubernetesCluster
from controlplane.adapters.clusters.kubernetes.connection_checks import SchedulerChecks
from controlplane.adapters.clusters.kubernetes.launch_plans import LaunchPlan
from controlplane.adapters.clusters.kubernetes.launch_status import FoundLaunch
from controlplane.adapters.clusters.kubernetes.network_topology import HYPERNODES, domains_of
from controlplane.adapters.clusters.volcano import (
    jobs,
    object_names,
    object_sync,
    queues,
    scheduler_configuration,
)
from controlplane.adapters.clusters.volcano.jobs import SchedulingTarget
from controlplane.adapters.clusters.volcano.launch_status import (
    ABORTED,
    VolcanoObjects,
    with_replica_index,
    with_volcano_status,
)
from controlplane.domain.common.reasons import Reason, join_reasons
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.quotas.queue_documents import Documents
from controlplane.ports import adapter_registry
from controlplane.ports.clusters import (
    ClusterError,
    ClusterObject,
    InvalidClusterOption,
    LaunchRefused,
    ReplicaPhase,
)
from controlplane.ports.launches import Launch

_JOBS = f"/apis/{object_names.JOBS}/jobs"
_GROUPS = f"/apis/{object_names.QUEUES}/podgroups"


#: Labels of a Launch: uid of its queue, number of its priority, level of the network that it may not leave.
QUEUE, PRIORITY, WITHIN = "queue", "priority", "within"


class VolcanoCluster(KubernetesCluster):
    """Implements ``controlplane.ports.clusters.ClusterAdapter``.

    Beside the options of a Kubernetes cluster, ``queue`` names the cluster's queue for Launches that name none.
    """

    binds = False

    def __init__(self, *, queue: str = object_names.DEFAULT, **options: Any) -> None:
        super().__init__(**options)
        self._queue = queue
        if self.profile.device_classes:
            raise InvalidClusterOption(
                "volcano.options.device_classes",
                "device_classes is not supported with Volcano, whose queues count extended "
                "resources of device plug-ins; register the cluster with the kind kubernetes",
            )

    def _list_hypernodes(self) -> Sequence[Object]:
        """Foreign HyperNodes: ours only repeat the nodes' labels, under longer names."""
        found = super()._list_hypernodes()
        return [
            one
            for one in found
            if not marking.is_managed_by_installation(one, installation=self.installation)
        ]

    def _pods_by_launch(self, requested_names: Sequence[str]) -> Mapping[str, Sequence[Object]]:
        return {
            name: [with_replica_index(pod) for pod in pods]
            for name, pods in super()._pods_by_launch(requested_names).items()
        }

    def _launch_pods_by_name(self, name: str) -> Sequence[Object] | None:
        """Nothing: Volcano names its pods."""
        return None

    def _find_launches(self, wanted: Collection[str]) -> Mapping[str, FoundLaunch]:
        found = super()._find_launches(wanted)
        scheduled = {name: one for name, one in found.items() if not one.pinned}
        # Where every process runs, Volcano has nothing to add.
        objects = self._volcano_objects(
            [
                one
                for one in scheduled.values()
                if any(each.phase is not ReplicaPhase.RUNNING for each in one.launch.replicas)
            ]
        )
        return {**found} | {
            name: with_volcano_status(one, objects.get(name, VolcanoObjects()))
            for name, one in scheduled.items()
        }

    def _volcano_objects(self, some: Sequence[FoundLaunch]) -> Mapping[str, VolcanoObjects]:
        """What Volcano has of those Launches, by name."""
        if not some:
            return {}
        names = [one.launch.name for one in some]
        created, groups = (self._objects_by_launch(path, names) for path in (_JOBS, _GROUPS))
        every_queue = self.api.list(object_sync.QUEUES_PATH) if groups else ()
        by_name = {object_name(queue): queue for queue in every_queue}
        objects = {}
        for one, name in zip(some, names, strict=True):
            group = groups.get(name)
            queue = by_name.get(nested_field(group or {}, "spec").get("queue"))
            known = VolcanoObjects(job=created.get(name), group=group, queue=queue)
            objects[name] = replace(known, evicted=self._eviction_reason(one, known))
        return objects

    def _eviction_reason(self, found: FoundLaunch, objects: VolcanoObjects) -> str:
        """Volcano's reason for an eviction, where the gang was not ended by us."""
        if found.stop_by is not None or objects.phase not in ABORTED:
            return ""
        pods = {
            marking.pod_name(found.launch.name, role=one.role, index=one.index)
            for one in found.launch.replicas
        }
        # Without the right to read events, the conditions of pods have to do.
        events = self.api.list_visible(
            f"/api/v1/namespaces/{found.namespace}/events", query={"fieldSelector": "reason=Evict"}
        )
        about_pods = (event for event in events if event["involvedObject"].get("name") in pods)
        messages = (
            str(event.get("message") or "")
            or Reason("volcano.eviction.by_scheduler", "evicted by the scheduler")
            for event in about_pods
        )
        return next(messages, "")

    def _objects_by_launch(self, path: str, names: Sequence[str]) -> Mapping[str, Object]:
        query = marking.owned_objects_query(installation=self.installation)
        every = {
            labels_of(each).get(marking.LAUNCH): each for each in self.api.list(path, query=query)
        }
        return {name: every[name] for name in names if name in every}

    def stop(self, name: str, *, grace: timedelta) -> None:
        """Stop its pods, and have Volcano create no others; for a Job without pods the latter suffices."""
        found = self._find_launch(name)
        if found is None or found.launch.ended:
            return
        super().stop(name, grace=grace)
        job = self.api.found(f"/apis/{object_names.JOBS}/namespaces/{found.namespace}/jobs/{name}")
        if job is not None:
            self.api.ensure(
                object_names.command_manifest("Job", job["metadata"], action="AbortJob")
            )

    def objects(self, name: str) -> tuple[ClusterObject, ...]:
        found = super().objects(name)
        created = [
            inspection.displayed_object({"apiVersion": version, **thing}, kind=kind)
            for version, path, kind in (
                (object_names.JOBS, _JOBS, "Job"),
                (object_names.QUEUES, _GROUPS, "PodGroup"),
            )
            for thing in self._objects_by_launch(path, [name]).values()
        ]
        return (*created, *found)

    def sync_queues(self, documents: Documents) -> tuple[FieldFinding, ...]:
        """Make the cluster's Queues match the tree.

        :return: what Volcano does not support, and what cannot be deleted yet.
        :raises ClusterError: if Volcano would refuse a part of the tree, in which case nothing is changed; or if
            the cluster does not respond or refuses, and earlier changes are kept.
        """
        ours = queues.translate_queues(
            documents, resources=self.extended_resources(), installation=self.installation
        )
        if wrong := queues.queue_violations(ours.queues):
            raise ClusterError(join_reasons(each.message for each in wrong))
        theirs = self.api.list(object_sync.QUEUES_PATH)
        plan = object_sync.plan_queue_changes(ours, theirs, installation=self.installation)
        object_sync.apply_changes(self.api, plan.changes)
        return (*ours.findings, *plan.findings)

    def sync_priority_classes(self, classes: Mapping[str, int]) -> None:
        """Create a PriorityClass for each value, by its display name."""
        theirs = self.api.list(object_sync.PRIORITY_CLASSES_PATH)
        changes = object_sync.plan_priority_classes(classes, theirs, installation=self.installation)
        object_sync.apply_changes(self.api, changes)

    def sync_topology(self) -> None:
        """Sync HyperNodes with the topology in the nodes' labels.

        Where another component manages some, such as Volcano's own discovery, we create none: a node in two trees
        is in none for Volcano.
        """
        theirs = self.api.list(HYPERNODES)
        ours: Sequence[Manifest] = ()
        if len(object_sync.own_objects(theirs, installation=self.installation)) == len(theirs):
            domains = domains_of(self.api.list("/api/v1/nodes"))
            ours = object_sync.hyper_nodes(domains, installation=self.installation)
        changes = object_sync.plan_hyper_nodes(ours, theirs, installation=self.installation)
        object_sync.apply_changes(self.api, changes)

    def extended_resources(self) -> Mapping[str, str]:
        """Extended resource by chip, of the chips that the cluster has."""
        chips = {card.chip for node in self.inventory() for card in node.cards}
        known = adapter_registry.all_chips()
        return {
            chip: known[chip].resource
            for chip in sorted(chips)
            if chip in known and known[chip].resource
        }

    def _scheduler_checks(self) -> SchedulerChecks:
        return partial(scheduler_configuration.volcano_checks, resources=self._visible_resources)

    def _visible_resources(self) -> Collection[str]:
        try:
            return self.extended_resources().values()
        except ApiRefused:
            # The check of permissions reports it.
            return ()

    # -- Launching --

    def _scheduling_target(self, launch: Launch) -> SchedulingTarget:
        """:raises LaunchRefused: if a label of the Launch cannot be followed here."""
        uid, priority = launch.labels.get(QUEUE, ""), self._priority_class(launch)
        queue = object_names.queue_name(uid, installation=self.installation) if uid else self._queue
        return SchedulingTarget(
            queue=queue,
            priority=object_name(priority) if priority else "",
            tier=self._hypernode_tier(launch.labels.get(WITHIN, "")),
        )

    def _priority_class(self, launch: Launch) -> Manifest | None:
        text = launch.labels.get(PRIORITY, "")
        if not text:
            return None
        try:
            value = int(text)
        except ValueError:
            raise LaunchRefused(
                "volcano.priority.not_an_integer",
                "the priority must be an integer, got {value}",
                value=repr(text),
            ) from None
        return object_sync.priority_class(value, title=text, installation=self.installation)

    def _ensure_namespace(self, plan: LaunchPlan) -> None:
        """Checked once, before the first object of a Launch."""
        if plan.launch.pinned:
            super()._ensure_namespace(plan)
            return
        queue = self._scheduling_target(plan.launch).queue
        queues.check_accepts_work(queue, self.api.list(object_sync.QUEUES_PATH))
        if priority := self._priority_class(plan.launch):
            self.api.ensure(priority)
        super()._ensure_namespace(plan)

    def _owned_manifests(self, plan: LaunchPlan, record: Object) -> Iterator[Manifest]:
        if plan.launch.pinned:
            # The default scheduler of Kubernetes sends its pods to their nodes; Volcano's does not see them.
            yield from super()._owned_manifests(plan, record)
            return
        target, owner = self._scheduling_target(plan.launch), dict(record)
        serves = jobs.is_service_launch(plan.launch)
        for manifest in super()._owned_manifests(plan, record):
            if manifest["kind"] == "Pod":
                continue
            selector = nested_field(manifest, "spec", "selector")
            if not serves and marking.INDEX in selector:
                # Pods that Volcano creates are distinguished by its own label.
                selector[object_names.TASK_INDEX] = selector.pop(marking.INDEX)
            yield manifest
        if not serves:
            yield jobs.job_manifest(plan, target, owner=owner)
            return
        yield jobs.pod_group(plan, target, owner=owner)
        for role in plan.launch.roles:
            for replica in plan.replicas[role.name]:
                yield jobs.member_pod_manifest(plan, role, replica, target, owner=owner)

    def delete_launch_objects(self, namespace: str, name: str, *, grace: int) -> None:
        for version, kind in ((object_names.JOBS, "jobs"), (object_names.QUEUES, "podgroups")):
            self.api.delete(f"/apis/{version}/namespaces/{namespace}/{kind}/{name}")
        super().delete_launch_objects(namespace, name, grace=grace)

    def _hypernode_tier(self, level: str) -> int | None:
        if not level:
            return None
        found = [
            each for each in self.api.list(HYPERNODES) if each["spec"].get("tierName") == level
        ]
        if not found:
            raise LaunchRefused(
                "volcano.topology.level_not_found",
                "the workload must run within one {level}, but the cluster has no HyperNode of "
                "this level; set the topology labels of its nodes, or remove the constraint",
                level=level,
            )
        return int(found[0]["spec"]["tier"])
