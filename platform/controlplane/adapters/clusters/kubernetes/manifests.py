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

from controlplane.adapters.clusters.kubernetes import devices, marks, names
from controlplane.adapters.clusters.kubernetes.isolation import Level, security_labels
from controlplane.adapters.clusters.kubernetes.plans import (
    ARCHIVE,
    RECORD,
    Manifest,
    Plan,
    Replica,
    file_key,
)
from controlplane.adapters.clusters.kubernetes.pods import pod_template
from controlplane.adapters.clusters.placeholders import fill
from controlplane.ports.clusters import LaunchRefused
from controlplane.ports.launches import Role

#: An object of the API holds 1 MiB; the record's own lines and the logs of a stopped Launch need some of it.
_LARGEST_FILES = 384 * 1024


def namespace(name: str, *, installation: str, level: Level) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "labels": {**names.marks(installation=installation), **security_labels(level)},
            "annotations": {names.POD_SECURITY: level.value},
        },
    }


def runtime(plan: Plan) -> Manifest:
    """The shared archive; equal for every Launch of this version of the product."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": plan.runtime.name,
            "namespace": plan.namespace,
            "labels": names.marks(installation=plan.installation),
        },
        "immutable": True,
        "binaryData": {ARCHIVE: b64encode(plan.runtime.content).decode("ascii")},
    }


def record(plan: Plan) -> Manifest:
    """:raises LaunchRefused: if its files are too large for one object."""
    launch = plan.launch
    values = plan.values(None)
    files = {file_key(path): fill(text, values) for path, text in launch.files.items()}
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
            "labels": plan.marks(),
        },
        "data": {RECORD: plan.kept(), **files},
    }


def secret(plan: Plan, *, owner: Manifest) -> Manifest:
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


def service(plan: Plan, *, owner: Manifest) -> Manifest:
    """Headless: each replica has a name before it is ready, as a gang's members look for each other."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": owned_by(plan, owner, name=plan.launch.name),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": names.marks(installation=plan.installation, launch=plan.launch.name),
        },
    }


def secret_value(found: Mapping[str, Any] | None, name: str) -> str:
    """One value of a Secret; empty if there is none."""
    text = ((found or {}).get("data") or {}).get(name, "")
    return b64decode(text).decode()


def node_port(plan: Plan, role: Role, *, index: int, owner: Manifest) -> Manifest:
    """A way in from outside of the cluster to one replica."""
    pod = names.pod_name(plan.launch.name, role=role.name, index=index)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": owned_by(plan, owner, name=pod),
        "spec": {
            "type": "NodePort",
            "externalTrafficPolicy": "Local",
            "selector": {
                **names.marks(installation=plan.installation, launch=plan.launch.name),
                names.ROLE: role.name,
                names.INDEX: str(index),
            },
            "ports": [
                {"name": name, "port": number, "targetPort": number}
                for name, number in plan.ports(role).items()
            ],
        },
    }


def vendor_map(plan: Plan, *, owner: Manifest) -> Manifest | None:
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


def claim_template(plan: Plan, role: Role, *, owner: Manifest) -> Manifest | None:
    """By which the pods of the role get devices of a DRA driver; None where a device plug-in offers them."""
    metadata = owned_by(plan, owner, name=devices.template_name(plan, role))
    return devices.claim_template(plan, role, metadata=metadata)


def pod(plan: Plan, role: Role, replica: Replica, *, owner: Manifest) -> Manifest:
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
    template["spec"]["tolerations"].append(marks.toleration(plan.installation))
    name = names.pod_name(plan.launch.name, role=role.name, index=replica.index)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **owned_by(plan, owner, name=name),
            **template["metadata"],
            # An ended pod stays until we have seen how it ended, whoever deletes it.
            "finalizers": [names.OBSERVED],
        },
        "spec": template["spec"],
    }


def owned_by(plan: Plan, owner: Manifest, *, name: str) -> Manifest:
    metadata = owner["metadata"]
    return {
        "name": name,
        "namespace": plan.namespace,
        "labels": plan.marks(),
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": metadata["name"],
                "uid": metadata["uid"],
            }
        ],
    }
