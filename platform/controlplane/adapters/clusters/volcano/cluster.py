"""The adapter: Kubernetes whose nodes and devices Volcano chooses.

Ninefold admits, and says which queue, which priority and how close together; Volcano binds, and it alone takes
cards back. A gang whose cards were taken is reported as stopped, and starting it again is a new attempt of ours.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from controlplane.adapters.clusters.kubernetes import checks as kubernetes_checks
from controlplane.adapters.clusters.kubernetes import inspection
from controlplane.adapters.clusters.kubernetes import names as marking
from controlplane.adapters.clusters.kubernetes.api import ApiRefused, Object
from controlplane.adapters.clusters.kubernetes.cluster import KubernetesCluster
from controlplane.adapters.clusters.kubernetes.observing import Found
from controlplane.adapters.clusters.kubernetes.profiles import ProfileRefused
from controlplane.adapters.clusters.volcano import checks, configuration, jobs, keeping, names
from controlplane.adapters.clusters.volcano.launching import VolcanoLauncher
from controlplane.adapters.clusters.volcano.phases import ABORTED, Held, judged, placed
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.quotas.documents import Documents
from controlplane.ports import registry
from controlplane.ports.clusters import Check, ClusterObject, Phase

_JOBS = f"/apis/{names.JOBS}/jobs"
_GROUPS = f"/apis/{names.QUEUES}/podgroups"


class VolcanoCluster(KubernetesCluster):
    """Implements ``controlplane.ports.clusters.Cluster``.

    Beside the options of a Kubernetes cluster, ``queue`` names the cluster's queue for Launches that say none.
    """

    def __init__(
        self,
        *,
        installation: str,
        kubeconfig: str = "",
        in_cluster: bool = False,
        queue: str = names.DEFAULT,
        **options: Any,
    ) -> None:
        super().__init__(
            installation=installation, kubeconfig=kubeconfig, in_cluster=in_cluster, **options
        )
        if self.profile.device_classes:
            raise ProfileRefused(
                "device_classes cannot be used with Volcano: its queues count extended resources, which only a "
                "device plug-in offers; register the cluster with the kind kubernetes"
            )
        self._launcher = VolcanoLauncher(
            self.api,
            profile=self.profile,
            installation=self.installation,
            find=self._find,
            queue=queue,
        )

    def _hypernodes(self) -> Sequence[Object]:
        """Those of others: ours say only what the nodes say, under longer names."""
        found = super()._hypernodes()
        return [each for each in found if not names.is_ours(each, installation=self.installation)]

    def _pods(self, sought: Sequence[str]) -> Mapping[str, Sequence[Object]]:
        return {name: placed(pods) for name, pods in super()._pods(sought).items()}

    def _by_name(self, name: str) -> Sequence[Object] | None:
        """Nothing: Volcano names its pods."""
        return None

    def _find(self, wanted: Collection[str]) -> Mapping[str, Found]:
        found = super()._find(wanted)
        # Where every process runs, Volcano has nothing to add.
        held = self._held([one for one in found.values() if not _runs(one)])
        return {name: judged(one, held.get(name, Held())) for name, one in found.items()}

    def _held(self, some: Sequence[Found]) -> Mapping[str, Held]:
        """What Volcano has of those Launches, by name."""
        if not some:
            return {}
        sought = [one.launch.name for one in some]
        made = self._by_launch(_JOBS, sought)
        groups = self._by_launch(_GROUPS, sought)
        queues = {
            queue["metadata"]["name"]: queue
            for queue in (self.api.list(keeping.QUEUES).items if groups else ())
        }
        held = {}
        for one in some:
            name = one.launch.name
            group = groups.get(name)
            known = Held(
                job=made.get(name),
                group=group,
                queue=queues.get((group or {}).get("spec", {}).get("queue")),
            )
            held[name] = replace(known, evicted=self._eviction(one, known))
        return held

    def _eviction(self, found: Found, held: Held) -> str:
        """What Volcano said of an eviction, where somebody other than us ended the gang."""
        if found.stop_by is not None or held.phase not in ABORTED:
            return ""
        pods = {
            marking.pod_name(found.launch.name, role=one.role, index=one.index)
            for one in found.launch.replicas
        }
        try:
            events = self.api.list(
                f"/api/v1/namespaces/{found.namespace}/events",
                query={"fieldSelector": "reason=Evict"},
            )
        except ApiRefused:
            # Without the right to read events, the conditions of pods have to do.
            return ""
        said = [
            str(event.get("message") or "the scheduler evicted it")
            for event in events.items
            if event["involvedObject"].get("name") in pods
        ]
        return said[0] if said else ""

    def _by_launch(self, path: str, sought: Sequence[str]) -> Mapping[str, Object]:
        query = {"labelSelector": marking.selector(marking.marks(installation=self.installation))}
        found = self.api.list(path, query=query).items
        every = {each["metadata"]["labels"].get(marking.LAUNCH, ""): each for each in found}
        return {name: every[name] for name in sought if name in every}

    def stop(self, name: str, *, grace: timedelta) -> None:
        """Its pods are told to end, and Volcano to make no others; a Job without pods ends by that alone."""
        found = self._find([name]).get(name)
        if found is None or found.launch.ended:
            return
        super().stop(name, grace=grace)
        job = self.api.found(f"/apis/{names.JOBS}/namespaces/{found.namespace}/jobs/{name}")
        if job is not None:
            metadata = job["metadata"]
            command = jobs.command(
                name,
                namespace=found.namespace,
                uid=metadata["uid"],
                labels=metadata.get("labels") or {},
            )
            keeping.ensure(self.api, command)

    def objects(self, name: str) -> tuple[ClusterObject, ...]:
        found = super().objects(name)
        made = [
            inspection.shown({"apiVersion": version, **thing}, kind=kind)
            for version, path, kind in (
                (names.JOBS, _JOBS, "Job"),
                (names.QUEUES, _GROUPS, "PodGroup"),
            )
            for thing in self._by_launch(path, [name]).values()
        ]
        return (*made, *found)

    def checks(self) -> tuple[Check, ...]:
        found = kubernetes_checks.connection_checks(
            self.api,
            installation=self.installation,
            prefix=self.profile.namespace,
            plugins=tuple(registry.chip_plugins().values()),
            cpu_cards=self.profile.cpu_cards,
            volcano=True,
        )
        # One that does not answer has said so.
        return found if len(found) == 1 else (*found, *checks.volcano_checks(self.api))

    def keep_queues(self, documents: Documents) -> tuple[FieldFinding, ...]:
        """As ``keeping.keep_queues`` says, for the chips of this cluster."""
        return keeping.keep_queues(
            self.api, documents, resources=self.resources(), installation=self.installation
        )

    def keep_priorities(self, classes: Mapping[str, int]) -> None:
        """Let the cluster have a PriorityClass for each value, by what people call it."""
        keeping.keep_priorities(self.api, classes, installation=self.installation)

    def keep_topology(self) -> None:
        """As ``keeping.keep_topology`` says."""
        keeping.keep_topology(self.api, installation=self.installation)

    def resources(self) -> Mapping[str, str]:
        """Extended resource by chip, of the chips that the cluster has."""
        chips = {card.chip for node in self.inventory() for card in node.cards}
        known = registry.chips()
        return {
            chip: known[chip].resource
            for chip in sorted(chips)
            if chip in known and known[chip].resource
        }

    def scheduler_configuration(self) -> str:
        """The ConfigMap that we recommend to its administrator, as YAML."""
        return configuration.rendered(self.resources().values())


def _runs(found: Found) -> bool:
    return all(replica.phase is Phase.RUNNING for replica in found.launch.replicas)
