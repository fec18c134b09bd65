"""Create the objects of a Launch, all or none; idempotent.

The record is created first and its mark ``launched`` set last: what is between is repeated by the next call, so
a worker that dies in between only costs time. Once the mark is set nothing is created any more: a pod that is
missing then was deleted, and is never run twice.
"""

from __future__ import annotations

import json
import logging
import re
import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain

from controlplane.adapters.clusters.kubernetes import (
    inventory,
    manifests,
    object_names,
    team_isolation,
)
from controlplane.adapters.clusters.kubernetes.api import (
    ApiAccessDenied,
    ApiRefused,
    KubernetesApi,
    Manifest,
    Object,
    annotations_of,
    object_name,
    object_path,
)
from controlplane.adapters.clusters.kubernetes.cluster_profile import ClusterProfile
from controlplane.adapters.clusters.kubernetes.dra import DraDevices
from controlplane.adapters.clusters.kubernetes.launch_plans import (
    LaunchPlan,
    PlannedReplica,
    runtime_archive,
)
from controlplane.adapters.clusters.kubernetes.launch_status import (
    FoundLaunch,
    checkpoint_source_launch,
    pod_path,
)
from controlplane.adapters.clusters.kubernetes.team_isolation import PodSecurityLevel
from controlplane.adapters.clusters.launch_validation import (
    NAME_PATTERN,
    check_launch,
    check_launch_identifier,
)
from controlplane.domain.common.reasons import Reason, reason_as_json, truncate_reason
from controlplane.ports import adapter_registry
from controlplane.ports.chips import VendorPodSettings
from controlplane.ports.clusters import (
    ClusterError,
    ClusterUnavailable,
    LaunchRefused,
    ObservedNode,
)
from controlplane.ports.launches import Launch

log = logging.getLogger(__name__)

#: API reasons for a pod in a namespace that is too new, or being terminated.
_TRANSIENT_REFUSALS = ("error looking up service account", "being terminated")
#: A node's name is a DNS subdomain.
_NODE = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_LONGEST = 1000


class PodLauncher:
    """The part of the adapter that creates and deletes the objects of a Launch."""

    #: Whether we choose nodes and devices.
    binds = True

    def __init__(self, api: KubernetesApi, *, profile: ClusterProfile, installation: str) -> None:
        self.api = api
        self.profile = profile
        self.installation = installation
        self._namespaces: dict[str, PodSecurityLevel] = {}
        #: Launch → its namespace, as far as this process has seen it.
        self._launch_namespaces: dict[str, str] = {}
        self._devices = DraDevices(api, profile.device_classes, installation=installation)

    def _find_launches(self, wanted: Collection[str]) -> Mapping[str, FoundLaunch]:
        """The named Launches that exist."""
        raise NotImplementedError

    def launch(self, launch: Launch) -> None:
        team = launch.labels.get("team", "")
        namespace = object_names.namespace_of(team, prefix=self.profile.namespace)
        try:
            self._create_objects(launch, namespace=namespace)
        except ApiAccessDenied:
            # The existing objects are completed as soon as permission returns.
            raise
        except (ApiRefused, LaunchRefused) as refusal:
            self._undo_launch(launch, namespace=namespace, refusal=refusal)
        self._launch_namespaces[launch.name] = namespace

    def _create_objects(self, launch: Launch, *, namespace: str) -> None:
        check_launch_identifier(launch.name)
        path = f"/api/v1/namespaces/{namespace}/configmaps/{launch.name}"
        record = self.api.found(path)
        if record and {object_names.LAUNCHED, object_names.STOP_BY} & annotations_of(record).keys():
            return
        plan = self._plan_launch(launch, namespace=namespace)
        if record is None:
            plan = self._plan_with_earlier_checkpoints(plan)
            self._ensure_namespace(plan)
            self.api.ensure(manifests.record_manifest(plan))
            record = self.api.get(path)
        else:
            plan = plan.continuing(checkpoint_source_launch(record))
        for manifest in self._owned_manifests(plan, record):
            self.api.ensure(manifest)
        self.api.annotate(path, {object_names.LAUNCHED: datetime.now(UTC).isoformat()})

    def _undo_launch(self, launch: Launch, *, namespace: str, refusal: ClusterError) -> None:
        """Delete everything if nothing runs yet; else stop what runs, and record the reason in its end.

        :raises LaunchRefused: if no process of it was started.
        :raises ClusterUnavailable: if the call can be repeated in a moment.
        """
        message = str(refusal)
        if isinstance(refusal, ApiRefused):
            message = Reason(
                "launch.cluster.refused",
                "the cluster rejected {launch} with status {status}: {detail}",
                launch=launch.name,
                status=refusal.status,
                detail=message,
            )
        if not NAME_PATTERN.fullmatch(launch.name):
            raise LaunchRefused(message) from refusal
        pods = self._launch_pods(namespace, launch.name)
        if not pods:
            self.delete_launch_objects(namespace, launch.name, grace=1)
            if any(moment in message for moment in _TRANSIENT_REFUSALS):
                raise ClusterUnavailable(
                    "launch.namespace.not_ready",
                    "the namespace {namespace} is not ready: {detail}",
                    namespace=namespace,
                    detail=message,
                ) from refusal
            raise LaunchRefused(message) from refusal
        requested = {object_names.STOP_BY: datetime.now(UTC).isoformat()}
        record = f"/api/v1/namespaces/{namespace}/configmaps/{launch.name}"
        refused = json.dumps(reason_as_json(truncate_reason(message, _LONGEST)))
        self.api.annotate(record, {**requested, object_names.REFUSED: refused})
        for pod in pods:
            self.api.annotate(pod_path(pod), requested)
            # Its finalizer stays until its end was seen: its cards are free no sooner.
            self.api.delete(pod_path(pod), grace=1)

    def _plan_launch(self, launch: Launch, *, namespace: str) -> LaunchPlan:
        """:raises LaunchRefused: if it can never run here."""
        wanted = {place.node for role in launch.roles for place in role.placements}
        named = [name for name in sorted(wanted) if _NODE.fullmatch(name)]
        found = (self.api.found(f"/api/v1/nodes/{name}") for name in named)
        present = self._devices.on([node for node in found if node is not None])
        known = present
        if len(present) < len(wanted):
            known = self._devices.on(self.api.list("/api/v1/nodes"))
        check_launch(launch, nodes=self._observed_nodes(known))
        plugins = tuple(adapter_registry.chip_plugins().values())
        cpu_cards = self.profile.cpu_cards
        cards = {
            object_name(node): inventory.cards_of_node(node, plugins=plugins, cpu_cards=cpu_cards)
            for node in present
        }
        replicas = {
            role.name: [
                PlannedReplica(
                    index=index,
                    node=place.node,
                    cards=tuple(cards[place.node][card] for card in place.cards),
                    tolerated=frozenset()
                    if place.cards
                    else manifests.repelling_resources(cards[place.node]),
                )
                for index, place in enumerate(role.placements)
            ]
            for role in launch.roles
        }
        plan = LaunchPlan(
            launch=launch,
            profile=self.profile,
            installation=self.installation,
            namespace=namespace,
            runtime=runtime_archive(),
            replicas=replicas,
            extras=_vendor_pod_settings(replicas),
            checkpoints=launch.name,
            binds=self.binds or launch.pinned,
            devices=self._devices.claim_api_version(chain.from_iterable(replicas.values())),
        )
        if launch.shares_checkpoints and plan.spans_several_nodes and self.profile.work is None:
            raise LaunchRefused(
                "launch.checkpoints.not_shared",
                "the replicas of {launch} share checkpoints across nodes, but the cluster has no "
                "shared folder; set the cluster option work, or run the job on one node",
                launch=launch.name,
            )
        # Every refusal comes before the first object.
        draft = {"metadata": {"name": launch.name, "uid": ""}}
        manifests.record_manifest(plan)
        for _ in self._owned_manifests(plan, draft):
            pass
        return plan

    def _observed_nodes(
        self,
        nodes: Sequence[Object],
        *,
        pods: Sequence[Object] = (),
        hypernodes: Sequence[Object] = (),
    ) -> tuple[ObservedNode, ...]:
        return inventory.observed_nodes(
            nodes,
            pods,
            installation=self.installation,
            plugins=tuple(adapter_registry.chip_plugins().values()),
            cpu_cards=self.profile.cpu_cards,
            hypernodes=hypernodes,
        )

    def _plan_with_earlier_checkpoints(self, plan: LaunchPlan) -> LaunchPlan:
        """The plan in the folder of the checkpoints that it continues, if there are any.

        :raises LaunchRefused: if the Launch that it continues has not ended.
        """
        earlier = plan.launch.continues
        found = None if earlier is None else self._find_launches([earlier]).get(earlier)
        if found is None:
            return plan
        if not found.launch.ended:
            raise LaunchRefused(
                "launch.continuation.not_ended",
                "{launch} continues {previous}, which has not ended: stop it first",
                launch=plan.launch.name,
                previous=earlier,
            )
        return plan.continuing(found.checkpoints)

    def _ensure_namespace(self, plan: LaunchPlan) -> None:
        name = plan.namespace
        level = team_isolation.required_pod_security(
            manifests.pod_template(plan, role, plan.replicas[role.name][0])
            for role in plan.launch.roles
        )
        if self._namespaces.get(name) not in (level, PodSecurityLevel.PRIVILEGED):
            self._reconcile_namespace(name, level=level)
            self._namespaces[name] = level
        runtime = manifests.runtime_manifest(plan)
        if self.api.found(object_path(runtime)) is None:
            self.api.ensure(runtime)

    def _reconcile_namespace(self, name: str, *, level: PodSecurityLevel) -> None:
        """The namespace with its Pod Security labels and its NetworkPolicy, regardless of its creator."""
        query = {"fieldSelector": f"metadata.name={name}"}
        found = self.api.list("/api/v1/namespaces", query=query)
        if not found:
            namespace = team_isolation.namespace_manifest(
                name, installation=self.installation, level=level
            )
            self.api.ensure(namespace)
        elif change := team_isolation.pod_security_label_patch(found[0], level):
            try:
                self.api.merge(f"/api/v1/namespaces/{name}", change)
            except ApiAccessDenied:
                # The cluster's page reports it; an administrator may label it instead.
                log.warning("a namespace could not be labelled", extra={"namespace": name})
        policy = team_isolation.network_policy(
            name,
            installation=self.installation,
            profile=self.profile,
            control_plane=_resolve_host(team_isolation.external_host(self.profile.control_url)),
        )
        self.api.apply(policy)

    def _owned_manifests(self, plan: LaunchPlan, record: Object) -> Iterator[Manifest]:
        """What belongs to the record; pods last, as they need the rest."""
        launch, owner = plan.launch, dict(record)
        replicas = [(role, each) for role in launch.roles for each in plan.replicas[role.name]]
        if launch.secrets:
            yield manifests.secret_manifest(plan, owner=owner)
        if downloads := manifests.downloads_manifest(plan, owner=owner):
            yield downloads
        yield manifests.service_manifest(plan, owner=owner)
        if vendors := manifests.vendor_config_map_manifest(plan, owner=owner):
            yield vendors
        for role in launch.roles:
            if template := manifests.claim_template(plan, role, owner=owner):
                yield template
        for role, replica in replicas:
            if role.ports and self.profile.reach == "node_port":
                yield manifests.node_port_service_manifest(
                    plan, role, index=replica.index, owner=owner
                )
        for role, replica in replicas:
            yield manifests.pod_manifest(plan, role, replica, owner=owner)

    def _launch_pods(self, namespace: str, name: str) -> Sequence[Object]:
        query = object_names.owned_objects_query(installation=self.installation, launch=name)
        return self.api.list(f"/api/v1/namespaces/{namespace}/pods", query=query)

    def delete_launch_objects(self, namespace: str, name: str, *, grace: int) -> None:
        """Delete all objects. With 0 seconds of grace, for an ended Launch, its name is free immediately."""
        path = f"/api/v1/namespaces/{namespace}"
        ours = object_names.owned_objects_query(installation=self.installation, launch=name)
        for pod in self._launch_pods(namespace, name):
            self.api.delete(pod_path(pod), grace=grace)
            self._remove_finalizer(pod)
        for kind in ("secrets", "services", "configmaps"):
            for each in self.api.list(f"{path}/{kind}", query=ours):
                if object_name(each) != name or kind != "configmaps":
                    self.api.delete(f"{path}/{kind}/{object_name(each)}")
        self._devices.remove(namespace, name)
        self.api.delete(f"{path}/configmaps/{name}")

    def _remove_finalizer(self, pod: Object) -> None:
        finalizers = pod["metadata"].get("finalizers") or ()
        remaining = [each for each in finalizers if each != object_names.OBSERVED] or None
        self.api.merge_if_found(pod_path(pod), {"metadata": {"finalizers": remaining}})


def _vendor_pod_settings(replicas: Mapping[str, Sequence[PlannedReplica]]) -> VendorPodSettings:
    chips = {card.chip for each in replicas.values() for one in each for card in one.cards}
    for chip in sorted(chips):
        known = adapter_registry.chip_by_name(chip)
        if known is not None:
            return adapter_registry.plugin_of_chip(known).profile().pods.of(known)
    return VendorPodSettings()


def _resolve_host(host: str) -> tuple[str, ...]:
    """The IP addresses of a host; none if it has no name or its name is not known here."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM) if host else ()
    except OSError:
        log.warning("the host of control_url has no address", extra={"host": host})
        return ()
    return tuple(sorted({str(entry[4][0]).partition("%")[0] for entry in found}))
