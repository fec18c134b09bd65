"""The pod of one replica: what its container sees, may take, and is known by. Pure.

Files and inputs are mounted one by one, read-only: a pod sees the blobs of its own inputs and nothing else of the
store. What it writes goes into folders of its own, but for checkpoints where the cluster's profile says where they
outlive the pod.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from controlplane.adapters.clusters.kubernetes import dra, object_names
from controlplane.adapters.clusters.kubernetes.cluster_profile import ClusterProfile, SharedVolume
from controlplane.adapters.clusters.kubernetes.launch_plans import (
    ARCHIVE,
    CONTAINER,
    HOME,
    INPUTS,
    RUNTIME,
    WORK,
    LaunchPlan,
    Manifest,
    PlannedReplica,
    file_key,
)
from controlplane.adapters.clusters.launch_validation import fill_placeholders
from controlplane.domain.common.resources import MIB, Resources
from controlplane.ports import registry
from controlplane.ports.chips import PodExtras
from controlplane.ports.clusters import LaunchRefused
from controlplane.ports.launches import LaunchRole, Probe

CHECKPOINTS = "checkpoints"
_MASTER_PORT = 29_500
_USER = "ninefold-job"
#: Of the folder that inputs are mounted in, which holds nothing itself.
_MOUNT_POINTS = 64 * MIB
_MOST_FILES = 512
_PROBE_EVERY = 2
_DIGEST = re.compile(r"sha256:([0-9a-f]{2})([0-9a-f]{62})")


def pod_template(plan: LaunchPlan, role: LaunchRole, replica: PlannedReplica) -> Manifest:
    """What any controller that creates the pod needs: labels, annotations and the pod's spec, without a node."""
    launch, profile = plan.launch, plan.profile
    volumes = _mounted_volumes(plan)
    spec: Manifest = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # PID 1 of a process namespace ignores signals for which it has no handler: SIGTERM would not
        # stop most programs.
        "shareProcessNamespace": True,
        "hostname": object_names.pod_name(launch.name, role=role.name, index=replica.index)[
            :63
        ].rstrip("-"),
        "subdomain": launch.name,
        "terminationGracePeriodSeconds": max(1, ceil(launch.grace.total_seconds())),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": profile.run_as,
            "runAsGroup": profile.run_as,
            "fsGroup": profile.run_as,
            **({"supplementalGroups": list(plan.extras.groups)} if plan.extras.groups else {}),
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": _card_tolerations(replica),
        "volumes": [{"name": volume.name, **volume.source} for volume in volumes],
        "containers": [_container_manifest(plan, role, replica, volumes=volumes)],
    }
    if plan.claimed(replica):
        template = dra.template_name(plan, role)
        spec["resourceClaims"] = [{"name": dra.CLAIM, "resourceClaimTemplateName": template}]
    if launch.run_within is not None:
        spec["activeDeadlineSeconds"] = max(1, ceil(launch.run_within.total_seconds()))
    if profile.pull_secret:
        spec["imagePullSecrets"] = [{"name": profile.pull_secret}]
    if plan.host_network:
        spec |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    annotations = {
        **{key: plan.named(value) for key, value in plan.extras.annotations.items()},
        **_device_annotations(plan.extras, replica),
        object_names.RECORD: plan.record_json(),
        object_names.CARDS: ",".join(str(card.index) for card in replica.cards),
    }
    return {
        "metadata": {
            "labels": plan.owner_labels(
                **{object_names.ROLE: role.name, object_names.INDEX: str(replica.index)}
            ),
            "annotations": annotations,
        },
        "spec": spec,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _MountedVolume:
    """A volume of the pod, and where the container sees what of it."""

    name: str
    source: Manifest
    mounts: tuple[Manifest, ...]


def _mounted_volumes(plan: LaunchPlan) -> list[_MountedVolume]:
    """Outer folders before what is mounted inside of them."""
    launch, profile = plan.launch, plan.profile
    own = [("work", WORK), ("inputs", INPUTS), ("home", HOME), ("tmp", "/tmp")]  # noqa: S108 - the pod's own
    found = [
        _MountedVolume(
            name=name,
            source={"emptyDir": {"sizeLimit": str(_size_limit(name, profile))}},
            mounts=({"mountPath": path},),
        )
        for name, path in own
    ]
    found.append(
        _MountedVolume(
            name="shm",
            source={"emptyDir": {"medium": "Memory", "sizeLimit": str(profile.shared_memory)}},
            mounts=({"mountPath": "/dev/shm"},),  # noqa: S108 - where collectives look
        )
    )
    found.append(_config_map_volume("runtime", plan.runtime.name, {ARCHIVE: RUNTIME}))
    if launch.files:
        at = {file_key(path): f"{WORK}/{path}" for path in launch.files}
        found.append(_config_map_volume("files", launch.name, at))
    if launch.inputs:
        found.append(_inputs_volume(plan))
    if profile.work is not None:
        checkpoints = f"{plan.checkpoints}/{CHECKPOINTS}"
        checkpoint_mount = {"mountPath": f"{WORK}/{CHECKPOINTS}", "subPath": checkpoints}
        found.append(
            _MountedVolume(name="kept", source=profile.work.source(), mounts=(checkpoint_mount,))
        )
    hosts = [(each.host_path, each.at) for each in profile.mounts]
    hosts += [(path, path) for path in plan.extras.host_paths]
    for number, (path, where) in enumerate(hosts):
        found.append(
            _MountedVolume(
                name=f"host-{number}",
                source={"hostPath": {"path": path}},
                mounts=({"mountPath": where, "readOnly": True},),
            )
        )
    if plan.extras.config_map:
        source = {"configMap": {"name": plan.named(plan.extras.config_map)}}
        found.append(
            _MountedVolume(
                name="vendor",
                source=source,
                mounts=({"mountPath": plan.extras.config_map_at},),
            )
        )
    return found


def _size_limit(volume: str, profile: ClusterProfile) -> int:
    return _MOUNT_POINTS if volume == "inputs" else profile.ephemeral_storage


def _config_map_volume(volume: str, name: str, at: Mapping[str, str]) -> _MountedVolume:
    return _MountedVolume(
        name=volume,
        source={"configMap": {"name": name}},
        mounts=tuple(
            {"mountPath": path, "subPath": key, "readOnly": True} for key, path in at.items()
        ),
    )


def _inputs_volume(plan: LaunchPlan) -> _MountedVolume:
    """:raises LaunchRefused: if the cluster cannot reach the store, or there are too many files."""
    store = plan.profile.store
    if store is None:
        raise LaunchRefused(
            f"{plan.launch.name} has inputs and this cluster cannot reach the artifact store: set its option store"
        )
    count = sum(len(tree.files) for tree in plan.launch.inputs)
    if count > _MOST_FILES:
        raise LaunchRefused(
            f"the inputs of {plan.launch.name} have {count} files; a pod takes {_MOST_FILES}: pack them into fewer"
        )
    mounts = tuple(
        {
            "mountPath": f"{INPUTS}/{tree.name}/{path}",
            "subPath": _blob_path(digest),
            "readOnly": True,
        }
        for tree in plan.launch.inputs
        for path, digest in tree.files.items()
    )
    return _MountedVolume(name="store", source=_read_only(store), mounts=mounts)


def _read_only(volume: SharedVolume) -> Manifest:
    source = volume.source()
    if volume.claim:
        source["persistentVolumeClaim"]["readOnly"] = True
    return source


def _blob_path(digest: str) -> str:
    """Where the store keeps it, below its root."""
    found = _DIGEST.fullmatch(digest)
    if found is None:
        raise LaunchRefused(f"an input needs a digest sha256:<64 hex>, got {digest!r}")
    return f"sha256/{found[1]}/{found[2]}"


def _container_manifest(
    plan: LaunchPlan,
    role: LaunchRole,
    replica: PlannedReplica,
    *,
    volumes: Sequence[_MountedVolume],
) -> Manifest:
    values = plan.values(role, index=replica.index)
    container: Manifest = {
        "name": CONTAINER,
        "image": plan.image,
        "imagePullPolicy": plan.profile.pull_policy,
        "command": [_escape_variables(fill_placeholders(part, values)) for part in role.argv],
        "workingDir": WORK,
        "env": _environment_variables(plan, role, replica, values=values),
        "resources": _resource_requirements(plan, role.limits, replica),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "privileged": False,
            "readOnlyRootFilesystem": plan.profile.read_only_root,
            "capabilities": {"drop": ["ALL"]},
        },
        # After a failure its last lines remain in the pod's status when the log is deleted.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": volume.name, **mount} for volume in volumes for mount in volume.mounts
        ],
        "ports": [
            {"name": name[:15].rstrip("-"), "containerPort": number}
            for name, number in plan.ports(role).items()
        ],
    }
    if role.probe is not None:
        container |= _probe_manifests(role.probe, plan.ports(role))
    return container


def _probe_manifests(probe: Probe, ports: Mapping[str, int]) -> Manifest:
    """It may take its time until the first answer; after that, not answering takes it out of service only."""
    get = {
        "httpGet": {"path": probe.path, "port": ports[probe.port]},
        "periodSeconds": _PROBE_EVERY,
    }
    tries = max(1, ceil(probe.start_within.total_seconds() / _PROBE_EVERY))
    return {
        "startupProbe": {**get, "failureThreshold": tries, "timeoutSeconds": 2},
        "readinessProbe": {**get, "failureThreshold": 3, "timeoutSeconds": 5},
    }


def _environment_variables(
    plan: LaunchPlan, role: LaunchRole, replica: PlannedReplica, *, values: Mapping[str, str]
) -> list[Manifest]:
    launch = plan.launch
    requested = {name: fill_placeholders(text, values) for name, text in role.environment.items()}
    python_path = [RUNTIME, *filter(None, [requested.get("PYTHONPATH")])]
    plain = {
        "HOME": HOME,
        # The account is in no image's /etc/passwd, where torch (before 2.13) and others look for a name.
        "USER": _USER,
        "LOGNAME": _USER,
        "XDG_CACHE_HOME": f"{HOME}/.cache",
        "TMPDIR": "/tmp",  # noqa: S108 - the pod's own
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "NINEFOLD_WORK": WORK,
        "NINEFOLD_INPUTS": INPUTS,
        # The gateway and the kubelet's probes come from outside of the pod.
        "NINEFOLD_LISTEN": "0.0.0.0",  # noqa: S104 - the pod's own network
        **_rendezvous_variables(plan, role, replica),
        **requested,
        # An image may set them to all; a pod's own variables override the image's.
        **registry.hidden_devices(_runtime_volume(plan, replica)),
        **_visible_devices(replica),
        "PYTHONPATH": ":".join(python_path),
    }
    return [
        *(
            {"name": name, "value": _escape_variables(value)}
            for name, value in sorted(plain.items())
        ),
        *(
            {"name": name, "valueFrom": {"secretKeyRef": {"name": launch.name, "key": name}}}
            for name in sorted(launch.secrets)
        ),
    ]


def _runtime_volume(plan: LaunchPlan, replica: PlannedReplica) -> Iterator[str]:
    """Chips of the cards that a device plug-in gives by the variables of the container runtime.

    A DRA driver injects its devices by CDI, regardless of such variables.
    """
    if not plan.claimed(replica):
        yield from (card.chip for card in replica.cards if card.resource)


def _rendezvous_variables(
    plan: LaunchPlan, role: LaunchRole, replica: PlannedReplica
) -> Mapping[str, str]:
    """The five names by which launchers of distributed work find each other; none for a single process."""
    if len(role.placements) == 1:
        return {}
    return {
        "MASTER_ADDR": plan.leader,
        "MASTER_PORT": str(_MASTER_PORT),
        "NNODES": str(len(role.placements)),
        "NODE_RANK": str(replica.index),
        "NPROC_PER_NODE": str(max(1, len(replica.cards))),
    }


def _visible_devices(replica: PlannedReplica) -> Mapping[str, str]:
    """A device plug-in gives the container its own devices, which count from 0 there."""
    variables = {card.variable for card in replica.cards if card.resource and card.variable}
    numbers = ",".join(str(place) for place in range(len(replica.cards)))
    return dict.fromkeys(sorted(variables), numbers)


def _resource_requirements(
    plan: LaunchPlan, limits: Resources, replica: PlannedReplica
) -> Manifest:
    """Requests are limits: a pod that may exceed its request takes resources from its neighbours.

    Default limits keep a pod from exhausting its node, and reserve nothing.
    """
    amounts: dict[str, str] = {}
    if limits.cpu:
        amounts["cpu"] = f"{limits.cpu}m"
    if limits.memory:
        amounts["memory"] = str(limits.memory)
    claimed = {each.resource for each in plan.profile.device_classes}
    for card in replica.cards:
        if card.resource and card.resource not in claimed:
            amounts[card.resource] = str(int(amounts.get(card.resource, "0")) + 1)
    resources = {
        "memory": str(plan.profile.memory_per_card * max(1, len(replica.cards))),
        "ephemeral-storage": str(plan.profile.ephemeral_storage),
    }
    # Kubernetes takes a limit for the request where there is none.
    requested: Manifest = {
        "requests": dict.fromkeys(resources, "0") | amounts,
        "limits": resources | amounts,
    }
    return requested | {"claims": [{"name": dra.CLAIM}]} if plan.claimed(replica) else requested


def _card_tolerations(replica: PlannedReplica) -> list[Manifest]:
    """Nodes with cards often have a taint named like the resource, to repel other workloads.

    And the silence of a node ends no work: without a word on it, the cluster would delete pods after five minutes.
    """
    resources = sorted(
        {name for card in replica.cards for name in (card.resource, card.card_resource) if name}
    )
    silences = [
        {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute"}
        for taint in ("not-ready", "unreachable")
    ]
    return [*({"key": resource, "operator": "Exists"} for resource in resources), *silences]


def _device_annotations(extras: PodExtras, replica: PlannedReplica) -> dict[str, str]:
    if not extras.device_annotation or not replica.cards:
        return {}
    devices = (extras.device_name.format(index=card.index) for card in replica.cards)
    return {extras.device_annotation: ",".join(devices)}


def _escape_variables(text: str) -> str:
    """So that the kubelet does not read ``$(NAME)`` in it as a variable."""
    return text.replace("$(", "$$(")
