"""From a Launch to the objects that stand for it: pure, dicts in and dicts out.

::

    ConfigMap <name>            the record: what was launched; owner of everything below
      ├─ Secret <name>          values that are secret
      ├─ Service <name>         headless: gives each replica an address by name
      ├─ ResourceClaimTemplate <name>-<role>  where a DRA driver offers the cards
      └─ Pod <name>-<role>-<i>  one per replica, on the node that the scheduler chose
    ConfigMap ninefold-runtime-<digest>   the runtime package, shared by the namespace
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from controlplane.adapters.clusters.kubernetes import dra, isolation_taints, object_names
from controlplane.adapters.clusters.kubernetes.launch_plans import (
    ARCHIVE,
    RECORD,
    LaunchPlan,
    Manifest,
    PlannedReplica,
    file_key,
)
from controlplane.adapters.clusters.kubernetes.pods import pod_template
from controlplane.adapters.clusters.kubernetes.team_isolation import (
    PodSecurityLevel,
    security_labels,
)
from controlplane.adapters.clusters.launch_validation import fill_placeholders
from controlplane.ports.clusters import LaunchRefused
from controlplane.ports.launches import LaunchRole

#: An object of the API holds 1 MiB; the record's own lines and the logs of a stopped Launch need some of it.
_LARGEST_FILES = 384 * 1024


def namespace_manifest(name: str, *, installation: str, level: PodSecurityLevel) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "labels": {
                **object_names.owner_labels(installation=installation),
                **security_labels(level),
            },
            "annotations": {object_names.POD_SECURITY: level.value},
        },
    }


def runtime_manifest(plan: LaunchPlan) -> Manifest:
    """The shared archive; equal for every Launch of this version of the product."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": plan.runtime.name,
            "namespace": plan.namespace,
            "labels": object_names.owner_labels(installation=plan.installation),
        },
        "immutable": True,
        "binaryData": {ARCHIVE: b64encode(plan.runtime.content).decode("ascii")},
    }


def record_manifest(plan: LaunchPlan) -> Manifest:
    """:raises LaunchRefused: if its files are too large for one object."""
    launch = plan.launch
    values = plan.values(None)
    files = {file_key(path): fill_placeholders(text, values) for path, text in launch.files.items()}
    size = sum(len(text.encode()) for text in files.values())
    if size > _LARGEST_FILES:
        raise LaunchRefused(
            f"the files of {launch.name} have {size} bytes; a cluster takes {_LARGEST_FILES} beside a pod"
        )
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": launch.name,
            "namespace": plan.namespace,
            "labels": plan.owner_labels(),
        },
        "data": {RECORD: plan.record_json(), **files},
    }


def secret_manifest(plan: LaunchPlan, *, owner: Manifest) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": owned_by(plan, owner, name=plan.launch.name),
        "type": "Opaque",
        "data": {
            name: b64encode(value.encode()).decode("ascii")
            for name, value in plan.launch.secrets.items()
        },
    }


def service_manifest(plan: LaunchPlan, *, owner: Manifest) -> Manifest:
    """Headless: each replica has a DNS name before it is ready, as a gang's members resolve each other."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": owned_by(plan, owner, name=plan.launch.name),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": object_names.owner_labels(
                installation=plan.installation, launch=plan.launch.name
            ),
        },
    }


def secret_value(found: Mapping[str, Any] | None, name: str) -> str:
    """One value of a Secret; empty if there is none."""
    text = ((found or {}).get("data") or {}).get(name, "")
    return b64decode(text).decode()


def node_port(plan: LaunchPlan, role: LaunchRole, *, index: int, owner: Manifest) -> Manifest:
    """A way in from outside of the cluster to one replica."""
    pod = object_names.pod_name(plan.launch.name, role=role.name, index=index)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": owned_by(plan, owner, name=pod),
        "spec": {
            "type": "NodePort",
            "externalTrafficPolicy": "Local",
            "selector": {
                **object_names.owner_labels(
                    installation=plan.installation, launch=plan.launch.name
                ),
                object_names.ROLE: role.name,
                object_names.INDEX: str(index),
            },
            "ports": [
                {"name": name, "port": number, "targetPort": number}
                for name, number in plan.ports(role).items()
            ],
        },
    }


def vendor_map(plan: LaunchPlan, *, owner: Manifest) -> Manifest | None:
    """The ConfigMap that a controller of the chips' vendor fills in; None where none does."""
    extras = plan.extras
    if not extras.config_map:
        return None
    metadata = owned_by(plan, owner, name=plan.named(extras.config_map))
    metadata["labels"] |= {
        key: plan.named(value) for key, value in extras.config_map_labels.items()
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {key: plan.named(text) for key, text in extras.config_map_data.items()},
    }


def claim_template(plan: LaunchPlan, role: LaunchRole, *, owner: Manifest) -> Manifest | None:
    """By which the pods of the role get devices of a DRA driver; None where a device plug-in offers them."""
    metadata = owned_by(plan, owner, name=dra.template_name(plan, role))
    return dra.claim_template(plan, role, metadata=metadata)


def pod_manifest(
    plan: LaunchPlan, role: LaunchRole, replica: PlannedReplica, *, owner: Manifest
) -> Manifest:
    """One replica, bound to its node."""
    template = pod_template(plan, role, replica)
    template["spec"]["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchFields": [
                            {"key": "metadata.name", "operator": "In", "values": [replica.node]}
                        ]
                    }
                ]
            }
        }
    }
    template["spec"]["tolerations"].append(isolation_taints.isolation_toleration(plan.installation))
    name = object_names.pod_name(plan.launch.name, role=role.name, index=replica.index)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **owned_by(plan, owner, name=name),
            **template["metadata"],
            # A finalizer holds a deleted pod until its end has been recorded.
            "finalizers": [object_names.OBSERVED],
        },
        "spec": template["spec"],
    }


def owned_by(plan: LaunchPlan, owner: Manifest, *, name: str) -> Manifest:
    metadata = owner["metadata"]
    return {
        "name": name,
        "namespace": plan.namespace,
        "labels": plan.owner_labels(),
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": metadata["name"],
                "uid": metadata["uid"],
            }
        ],
    }
