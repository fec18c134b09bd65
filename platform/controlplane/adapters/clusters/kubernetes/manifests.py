"""The objects of a Launch: pure functions from dicts to dicts.

::

    ConfigMap <name>            the record of the Launch; owner of everything below
      ├─ Secret <name>          values that are secret
      ├─ Secret <name>-inputs   presigned URLs of inputs, where pods download them
      ├─ Service <name>         headless: gives each replica an address by name
      ├─ ResourceClaimTemplate <name>-<role>  where a DRA driver offers the cards
      └─ Pod <name>-<role>-<i>  one per replica, on the node that the scheduler chose
    ConfigMap ninefold-runtime-<digest>   the runtime package, shared by the namespace

Files and inputs are mounted one by one, read-only: a pod sees the blobs of its own inputs and nothing else of
the store, or of the weight cache that an init container fills. It writes to folders of its own, except for
checkpoints if the cluster's profile has a folder for them that outlives the pod.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from math import ceil
from typing import Any

from controlplane.adapters.clusters.kubernetes import isolation_taints, object_names
from controlplane.adapters.clusters.kubernetes.api import Manifest, api_object, nested_field
from controlplane.adapters.clusters.kubernetes.dra import CLAIM, GROUP
from controlplane.adapters.clusters.kubernetes.inventory import NodeCard
from controlplane.adapters.clusters.kubernetes.launch_plans import (
    ARCHIVE,
    AUTHORITIES,
    CACHE,
    CONTAINER,
    DOWNLOADER,
    DOWNLOADS,
    HOME,
    INPUTS,
    RECORD,
    RUNTIME,
    WORK,
    LaunchPlan,
    PlannedReplica,
    config_map_key,
)
from controlplane.adapters.clusters.launch_validation import fill_placeholders
from controlplane.domain.common.resources import MIB
from controlplane.ports import adapter_registry
from controlplane.ports.clusters import LaunchRefused
from controlplane.ports.launches import (
    AUTHORITIES_FILE,
    AUTHORITIES_VARIABLE,
    LaunchRole,
    ReadinessProbe,
)

#: An object of the API is limited to 1 MiB, of which the record itself and logs of a stopped Launch need a
#: part.
_LARGEST_FILES = 384 * 1024
CHECKPOINTS = "checkpoints"
_MASTER_PORT = 29_500
_USER = "ninefold-job"
_TMP = "/tmp"  # noqa: S108 - the pod's own
#: Of the folder that inputs are mounted in, which holds nothing itself.
_MOUNT_POINTS = 64 * MIB
_MOST_FILES = 512
_PROBE_EVERY = 2
#: Seconds for a container that is killed for its liveness probe: one that hangs ends no request any more.
_HUNG_GRACE = 10
#: Of the container that downloads inputs.
_DOWNLOADER_MEMORY = 512 * MIB
_DOWNLOAD_LIST = "inputs.json"
_DIGEST = re.compile(r"sha256:([0-9a-f]{2})([0-9a-f]{62})")


def runtime_manifest(plan: LaunchPlan) -> Manifest:
    """The shared archive; equal for every Launch of this version of the product."""
    metadata = {
        "name": plan.runtime.name,
        "namespace": plan.namespace,
        "labels": object_names.owner_labels(installation=plan.installation),
    }
    content = {ARCHIVE: b64encode(plan.runtime.content).decode("ascii")}
    return api_object("ConfigMap", metadata, immutable=True, binaryData=content)


def record_manifest(plan: LaunchPlan) -> Manifest:
    """:raises LaunchRefused: if its files are too large for one object."""
    launch = plan.launch
    values = plan.values(None)
    files = {
        config_map_key(path): fill_placeholders(text, values) for path, text in launch.files.items()
    }
    size = sum(len(text.encode()) for text in files.values())
    if size > _LARGEST_FILES:
        raise LaunchRefused(
            "launch.files.too_large",
            "the files of {launch} have {size} bytes; the limit is {limit}",
            launch=launch.name,
            size=size,
            limit=_LARGEST_FILES,
        )
    metadata = {"name": launch.name, "namespace": plan.namespace, "labels": plan.owner_labels()}
    return api_object("ConfigMap", metadata, data={RECORD: plan.record_json(), **files})


def secret_manifest(plan: LaunchPlan, *, owner: Manifest) -> Manifest:
    return _secret_of_values(plan, plan.launch.secrets, name=plan.launch.name, owner=owner)


def downloads_manifest(plan: LaunchPlan, *, owner: Manifest) -> Manifest | None:
    """The Secret with the URLs of the inputs; None where pods read the artifact store."""
    if not plan.launch.downloads:
        return None
    files = [
        {"digest": digest, "size": each.size, "url": each.url}
        for digest, each in sorted(plan.launch.downloads.items())
    ]
    values = {_DOWNLOAD_LIST: json.dumps({"files": files})}
    return _secret_of_values(plan, values, name=_downloads_name(plan), owner=owner)


def _secret_of_values(
    plan: LaunchPlan, values: Mapping[str, str], *, name: str, owner: Manifest
) -> Manifest:
    data = {key: b64encode(value.encode()).decode("ascii") for key, value in values.items()}
    metadata = metadata_with_owner(plan, owner, name=name)
    return api_object("Secret", metadata, type="Opaque", data=data)


def _downloads_name(plan: LaunchPlan) -> str:
    return f"{plan.launch.name}-inputs"


def secret_value(found: Mapping[str, Any] | None, name: str) -> str:
    """One value of a Secret; empty if there is none."""
    return b64decode(nested_field(found or {}, "data").get(name, "")).decode()


def service_manifest(plan: LaunchPlan, *, owner: Manifest) -> Manifest:
    """Headless: each replica has a DNS name before it is ready, as a gang's members resolve each other."""
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": plan.selector_labels(),
    }
    return api_object("Service", metadata_with_owner(plan, owner, name=plan.launch.name), spec=spec)


def node_port_service_manifest(
    plan: LaunchPlan, role: LaunchRole, *, index: int, owner: Manifest
) -> Manifest:
    """A way in from outside of the cluster to one replica."""
    place = {object_names.ROLE: role.name, object_names.INDEX: str(index)}
    spec = {
        "type": "NodePort",
        "externalTrafficPolicy": "Local",
        "selector": plan.selector_labels(**place),
        "ports": [
            {"name": name, "port": number, "targetPort": number}
            for name, number in plan.ports(role).items()
        ],
    }
    pod = object_names.pod_name(plan.launch.name, role=role.name, index=index)
    return api_object("Service", metadata_with_owner(plan, owner, name=pod), spec=spec)


def vendor_config_map_manifest(plan: LaunchPlan, *, owner: Manifest) -> Manifest | None:
    """The ConfigMap that a controller of the chips' vendor fills in; None where none does."""
    extras = plan.extras
    if not extras.config_map:
        return None
    metadata = metadata_with_owner(plan, owner, name=plan.named(extras.config_map))
    metadata["labels"] |= plan.fill_launch_names(extras.config_map_labels)
    return api_object("ConfigMap", metadata, data=plan.fill_launch_names(extras.config_map_data))


def claim_template_name(plan: LaunchPlan, role: LaunchRole) -> str:
    return f"{plan.launch.name}-{role.name}"


def claim_template(plan: LaunchPlan, role: LaunchRole, *, owner: Manifest) -> Manifest | None:
    """By which all replicas of the role get devices of a DRA driver; None where a device plug-in offers them."""
    requests: list[Manifest] = []
    for number, (device_class, count) in enumerate(
        plan.claimed(plan.replicas[role.name][0]).items()
    ):
        counted = {"allocationMode": "ExactCount", "count": count}
        requested = {"deviceClassName": device_class, **counted}
        exactly = requested if plan.devices == "v1beta1" else {"exactly": requested}
        requests.append({"name": f"{CLAIM}-{number}", **exactly})
    if not requests:
        return None
    metadata = metadata_with_owner(plan, owner, name=claim_template_name(plan, role))
    # Claims created from it carry the labels, which distinguish them from those of others.
    spec = {
        "metadata": {"labels": dict(metadata["labels"])},
        "spec": {"devices": {"requests": requests}},
    }
    version = f"{GROUP}/{plan.devices}"
    return api_object("ResourceClaimTemplate", metadata, version=version, spec=spec)


def metadata_with_owner(plan: LaunchPlan, owner: Manifest, *, name: str) -> Manifest:
    record = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    return {
        "name": name,
        "namespace": plan.namespace,
        "labels": plan.owner_labels(),
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", **record}],
    }


# -- Pods --


def pod_manifest(
    plan: LaunchPlan, role: LaunchRole, replica: PlannedReplica, *, owner: Manifest
) -> Manifest:
    """One replica; bound to its node, unless the cluster's scheduler chooses it."""
    template = pod_template(plan, role, replica)
    spec = template["spec"]
    if plan.binds:
        bound = {"key": "metadata.name", "operator": "In", "values": [replica.node]}
        terms = {"nodeSelectorTerms": [{"matchFields": [bound]}]}
        spec["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        }
        spec["tolerations"].append(isolation_taints.isolation_toleration(plan.installation))
    name = object_names.pod_name(plan.launch.name, role=role.name, index=replica.index)
    metadata = {
        **metadata_with_owner(plan, owner, name=name),
        **template["metadata"],
        # A finalizer holds a deleted pod until its end has been recorded.
        "finalizers": [object_names.OBSERVED],
    }
    return api_object("Pod", metadata, spec=spec)


def pod_template(
    plan: LaunchPlan, role: LaunchRole, replica: PlannedReplica, *, index: str | None = None
) -> Manifest:
    """What any controller that creates the pod needs: labels, annotations and the pod's spec, without a node.

    :param index: text that stands for the replica's index in its command and environment.
    """
    launch, profile, extras = plan.launch, plan.profile, plan.extras
    volumes = list(_mounted_volumes(plan))
    mounts = [{"name": name, **mount} for name, _source, each in volumes for mount in each]
    name = object_names.pod_name(launch.name, role=role.name, index=replica.index)
    spec: Manifest = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # PID 1 of a process namespace ignores signals for which it has no handler: SIGTERM would not
        # stop most programs.
        "shareProcessNamespace": True,
        "hostname": name[:63].rstrip("-"),
        "subdomain": launch.name,
        "terminationGracePeriodSeconds": max(1, ceil(launch.grace.total_seconds())),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": profile.run_as,
            "runAsGroup": profile.run_as,
            "fsGroup": profile.run_as,
            **({"supplementalGroups": list(extras.groups)} if extras.groups else {}),
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": _tolerations(replica),
        "volumes": [{"name": name, **source} for name, source, _mounts in volumes],
        "containers": [
            _container_manifest(
                plan, role, replica, mounts=mounts, index=index or str(replica.index)
            )
        ],
    }
    if launch.downloads:
        spec["initContainers"] = [_downloader_manifest(plan)]
    if plan.claimed(replica):
        template = claim_template_name(plan, role)
        spec["resourceClaims"] = [{"name": CLAIM, "resourceClaimTemplateName": template}]
    if launch.run_within is not None:
        spec["activeDeadlineSeconds"] = max(1, ceil(launch.run_within.total_seconds()))
    if profile.pull_secret:
        spec["imagePullSecrets"] = [{"name": profile.pull_secret}]
    if plan.host_network:
        spec |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    annotations = plan.fill_launch_names(extras.annotations)
    if plan.binds and extras.device_annotation and replica.cards:
        devices = (extras.device_name.format(index=card.index) for card in replica.cards)
        annotations[extras.device_annotation] = ",".join(devices)
    annotations[object_names.RECORD] = plan.record_json()
    if plan.binds:
        annotations[object_names.CARDS] = ",".join(str(card.index) for card in replica.cards)
    place = {object_names.ROLE: role.name, object_names.INDEX: str(replica.index)}
    metadata = {"labels": plan.owner_labels(**place), "annotations": annotations}
    return {"metadata": metadata, "spec": spec}


def _mounted_volumes(plan: LaunchPlan) -> Iterator[tuple[str, Manifest, list[Manifest]]]:
    """Name, source and mounts of each; outer folders before what is mounted inside of them."""
    launch, profile = plan.launch, plan.profile
    own = {"work": WORK, "inputs": INPUTS, "home": HOME, "tmp": _TMP}
    for name, path in own.items():
        size = _MOUNT_POINTS if name == "inputs" else profile.ephemeral_storage
        yield name, {"emptyDir": {"sizeLimit": str(size)}}, [{"mountPath": path}]
    memory = {"medium": "Memory", "sizeLimit": str(profile.shared_memory)}
    yield "shm", {"emptyDir": memory}, [{"mountPath": "/dev/shm"}]  # noqa: S108 - where collectives look
    archive = {"mountPath": RUNTIME, "subPath": ARCHIVE, "readOnly": True}
    yield "runtime", {"configMap": {"name": plan.runtime.name}}, [archive]
    if launch.files:
        files = [
            {"mountPath": f"{WORK}/{path}", "subPath": config_map_key(path), "readOnly": True}
            for path in launch.files
        ]
        yield "files", {"configMap": {"name": launch.name}}, files
    if launch.downloads:
        cache: Manifest = {"emptyDir": {"sizeLimit": str(profile.ephemeral_storage)}}
        yield "cache", profile.cache.source() if profile.cache else cache, _input_mounts(plan)
        yield "downloads", {"secret": {"secretName": _downloads_name(plan)}}, []
    elif launch.inputs:
        yield "store", _store_volume(plan), _input_mounts(plan)
    if profile.work is not None:
        folder = f"{plan.checkpoints}/{CHECKPOINTS}"
        mount = {"mountPath": f"{WORK}/{CHECKPOINTS}", "subPath": folder}
        yield "kept", profile.work.source(), [mount]
    hosts = [(each.host_path, each.at) for each in profile.mounts]
    hosts += [(path, path) for path in plan.extras.host_paths]
    for number, (path, where) in enumerate(hosts):
        source = {"hostPath": {"path": path}}
        yield f"host-{number}", source, [{"mountPath": where, "readOnly": True}]
    if plan.extras.config_map:
        source = {"configMap": {"name": plan.named(plan.extras.config_map)}}
        yield "vendor", source, [{"mountPath": plan.extras.config_map_at}]


def _store_volume(plan: LaunchPlan) -> Manifest:
    """:raises LaunchRefused: if the cluster cannot reach the store."""
    if plan.profile.store is None:
        raise LaunchRefused(
            "launch.input.store_missing",
            "{launch} has inputs, but the cluster has no access to the artifact store; set the "
            "cluster option store, or store artifacts on S3",
            launch=plan.launch.name,
        )
    source = plan.profile.store.source()
    if plan.profile.store.claim:
        source["persistentVolumeClaim"]["readOnly"] = True
    return source


def _input_mounts(plan: LaunchPlan) -> list[Manifest]:
    """:raises LaunchRefused: if there are too many files, or one has no digest."""
    files = [
        (f"{INPUTS}/{tree.name}/{path}", digest)
        for tree in plan.launch.inputs
        for path, digest in tree.files.items()
    ]
    if len(files) > _MOST_FILES:
        raise LaunchRefused(
            "launch.input.too_many_files",
            "the inputs of {launch} have {count} files; the limit of a pod is {limit}; pack them "
            "into fewer files",
            launch=plan.launch.name,
            count=len(files),
            limit=_MOST_FILES,
        )
    mounts = []
    for path, digest in files:
        found = _DIGEST.fullmatch(digest)
        if found is None:
            raise LaunchRefused(
                "launch.input.digest_format",
                "the digest of an input must be sha256:<64 hex>, got {digest}",
                digest=repr(digest),
            )
        blob = f"sha256/{found[1]}/{found[2]}"
        mounts.append({"mountPath": path, "subPath": blob, "readOnly": True})
    return mounts


def _container_manifest(
    plan: LaunchPlan,
    role: LaunchRole,
    replica: PlannedReplica,
    *,
    mounts: list[Manifest],
    index: str,
) -> Manifest:
    values = plan.values(role, index=index)
    container: Manifest = {
        "name": CONTAINER,
        "image": plan.image,
        "imagePullPolicy": plan.profile.pull_policy,
        "command": [fill_placeholders(_escape_variables(part), values) for part in role.argv],
        "workingDir": WORK,
        "env": _environment_variables(plan, role, replica, values=values),
        "resources": _resource_requirements(plan, role, replica),
        "securityContext": _container_security(plan),
        # After a failure its last lines remain in the pod's status when the log is deleted.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
        "ports": [
            {"name": name[:15].rstrip("-"), "containerPort": number}
            for name, number in plan.ports(role).items()
        ],
    }
    if role.probe is not None:
        container |= _probe_manifests(role.probe, plan.ports(role))
    return container


def _downloader_manifest(plan: LaunchPlan) -> Manifest:
    """Fills the weight cache before the workload starts. It alone sees the URLs and may write to the cache."""
    profile = plan.profile
    limit = profile.cache_size if profile.cache else profile.ephemeral_storage
    arguments = {
        "--manifest": f"{DOWNLOADS}/{_DOWNLOAD_LIST}",
        "--cache": CACHE,
        "--limit": str(limit),
    }
    amounts = {
        "memory": str(_DOWNLOADER_MEMORY),
        "ephemeral-storage": str(profile.ephemeral_storage),
    }
    hosts = [
        {"name": f"host-{number}", "mountPath": each.at, "readOnly": True}
        for number, each in enumerate(profile.mounts)
    ]
    plain = {"HOME": HOME, "PYTHONPATH": RUNTIME, "PYTHONUNBUFFERED": "1", "TMPDIR": _TMP}
    authorities: list[Manifest] = []
    if AUTHORITIES_FILE in plan.launch.files:
        plain[AUTHORITIES_VARIABLE] = AUTHORITIES
        key = config_map_key(AUTHORITIES_FILE)
        authorities = [
            {"name": "files", "mountPath": AUTHORITIES, "subPath": key, "readOnly": True}
        ]
    return {
        "name": DOWNLOADER,
        "image": profile.image or plan.image,
        "imagePullPolicy": profile.pull_policy,
        "command": [
            profile.python,
            "-m",
            "ninefold_runtime.weight_cache",
            *(word for pair in arguments.items() for word in pair),
        ],
        "workingDir": CACHE,
        "env": _plain_variables(plain),
        "resources": {"requests": dict.fromkeys(amounts, "0"), "limits": amounts},
        "securityContext": _container_security(plan),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "home", "mountPath": HOME},
            {"name": "tmp", "mountPath": _TMP},
            {"name": "runtime", "mountPath": RUNTIME, "subPath": ARCHIVE, "readOnly": True},
            {"name": "downloads", "mountPath": DOWNLOADS, "readOnly": True},
            {"name": "cache", "mountPath": CACHE},
            *authorities,
            *hosts,
        ],
    }


def _container_security(plan: LaunchPlan) -> Manifest:
    return {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "readOnlyRootFilesystem": plan.profile.read_only_root,
        "capabilities": {"drop": ["ALL"]},
    }


def _plain_variables(values: Mapping[str, str]) -> list[Manifest]:
    return [{"name": name, "value": text} for name, text in sorted(values.items())]


def _probe_manifests(probe: ReadinessProbe, ports: Mapping[str, int]) -> Manifest:
    """Slow until the first response. Afterwards missing responses make the pod not ready, and a container
    without a response for minutes is killed: under ``restartPolicy: Never``, its pod fails and is replaced.
    """
    timeout = max(1, ceil(probe.timeout.total_seconds()))
    get = {"httpGet": {"path": probe.path, "port": ports[probe.port]}}
    often = {**get, "periodSeconds": _PROBE_EVERY}
    tries = max(1, ceil(probe.start_within.total_seconds() / _PROBE_EVERY))
    return {
        "startupProbe": {**often, "failureThreshold": tries, "timeoutSeconds": 2},
        "readinessProbe": {
            **often,
            "failureThreshold": probe.unready_threshold,
            "timeoutSeconds": timeout,
        },
        "livenessProbe": {
            **get,
            "periodSeconds": max(1, ceil(probe.period.total_seconds())),
            "failureThreshold": probe.failure_threshold,
            "timeoutSeconds": timeout,
            "terminationGracePeriodSeconds": _HUNG_GRACE,
        },
    }


def _environment_variables(
    plan: LaunchPlan, role: LaunchRole, replica: PlannedReplica, *, values: Mapping[str, str]
) -> list[Manifest]:
    launch = plan.launch
    requested = {
        name: fill_placeholders(_escape_variables(text), values)
        for name, text in role.environment.items()
    }
    python_path = [RUNTIME, *filter(None, [requested.get("PYTHONPATH")])]
    # A device plug-in gives the container its own devices, which count from 0 there. A DRA driver injects its
    # devices by CDI, regardless of variables of the container runtime.
    given = [card for card in replica.cards if card.resource]
    variables = sorted({card.variable for card in given if card.variable})
    numbers = ",".join(str(place) for place in range(len(replica.cards)))
    plain = {
        "HOME": HOME,
        # The account is in no image's /etc/passwd, where torch (before 2.13) and others look for a name.
        "USER": _USER,
        "LOGNAME": _USER,
        "XDG_CACHE_HOME": f"{HOME}/.cache",
        "TMPDIR": _TMP,
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "NINEFOLD_WORK": WORK,
        "NINEFOLD_INPUTS": INPUTS,
        # The gateway and the kubelet's probes come from outside of the pod.
        "NINEFOLD_LISTEN": "0.0.0.0",  # noqa: S104 - the pod's own network
        **_rendezvous_variables(plan, role, replica, index=values["index"]),
        **requested,
        # An image may set them to all; a pod's own variables override the image's.
        **adapter_registry.variables_that_hide_devices(
            () if plan.claimed(replica) else (card.chip for card in given)
        ),
        **dict.fromkeys(variables, numbers),
        "PYTHONPATH": ":".join(python_path),
    }
    secrets = {name: {"name": launch.name, "key": name} for name in sorted(launch.secrets)}
    return [
        *_plain_variables(plain),
        *({"name": name, "valueFrom": {"secretKeyRef": key}} for name, key in secrets.items()),
    ]


def _rendezvous_variables(
    plan: LaunchPlan, role: LaunchRole, replica: PlannedReplica, *, index: str
) -> Mapping[str, str]:
    """The five names by which launchers of distributed work find each other; none for a single process."""
    if len(role.placements) == 1:
        return {}
    return {
        "MASTER_ADDR": plan.leader,
        "MASTER_PORT": str(_MASTER_PORT),
        "NNODES": str(len(role.placements)),
        "NODE_RANK": index,
        "NPROC_PER_NODE": str(max(1, len(replica.cards))),
    }


def _resource_requirements(plan: LaunchPlan, role: LaunchRole, replica: PlannedReplica) -> Manifest:
    """Requests equal limits: a pod that may exceed its request takes resources from its neighbours.

    Default limits keep a pod from exhausting its node, and reserve nothing.
    """
    amounts = {"cpu": f"{role.limits.cpu}m" if role.limits.cpu else ""}
    amounts["memory"] = str(role.limits.memory or "")
    amounts |= {name: str(count) for name, count in plan.extended_resources(replica).items()}
    amounts = {name: amount for name, amount in amounts.items() if amount}
    defaults = {
        "memory": str(plan.profile.memory_per_card * max(1, len(replica.cards))),
        "ephemeral-storage": str(plan.profile.ephemeral_storage),
    }
    # Without a request, Kubernetes uses the limit as request.
    requests = dict.fromkeys(defaults, "0") | amounts
    requirements: Manifest = {"requests": requests, "limits": defaults | amounts}
    return requirements | {"claims": [{"name": CLAIM}]} if plan.claimed(replica) else requirements


def _tolerations(replica: PlannedReplica) -> list[Manifest]:
    """Nodes with cards often have a taint named like the resource, to repel other workloads.

    And the silence of a node ends no work: without a word on it, the cluster would delete pods after five minutes.
    """
    resources = repelling_resources(replica.cards) | replica.tolerated
    silences = [
        {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute"}
        for taint in ("not-ready", "unreachable")
    ]
    return [{"key": name, "operator": "Exists"} for name in sorted(resources)] + silences


def repelling_resources(cards: Iterable[NodeCard]) -> frozenset[str]:
    """Resources of the cards, by which taints of their nodes are named."""
    return frozenset(name for card in cards for name in (card.resource, card.card_resource) if name)


def _escape_variables(text: str) -> str:
    """So that the kubelet does not read ``$(NAME)`` in it as a variable."""
    return text.replace("$(", "$$(")
