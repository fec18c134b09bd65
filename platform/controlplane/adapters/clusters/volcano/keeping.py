"""Queues, priority classes and HyperNodes of a cluster are brought up to date, as often as somebody asks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controlplane.adapters.clusters.kubernetes.api import Api, ApiRefused
from controlplane.adapters.clusters.kubernetes.topologies import HYPERNODES, domains_of
from controlplane.adapters.clusters.volcano import (
    changes,
    hypernodes,
    names,
    priorities,
    queues,
    rules,
)
from controlplane.adapters.clusters.volcano.changes import Act, Change
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.quotas.documents import Documents

QUEUES = f"/apis/{names.QUEUES}/queues"
PRIORITIES = f"/apis/{names.PRIORITIES}/priorityclasses"


def keep_queues(
    api: Api, documents: Documents, *, resources: Mapping[str, str], installation: str
) -> tuple[FieldFinding, ...]:
    """Make the cluster's Queues those of the tree.

    :param resources: extended resource by chip, of the chips that the cluster has.
    :return: what Volcano would refuse of the tree, in which case nothing is changed; else what of it Volcano does
        not keep, and what cannot be deleted yet.
    :raises ClusterError: if the cluster does not answer or refuses; what was done until then stays.
    """
    ours = queues.translated(documents, resources=resources, installation=installation)
    if wrong := rules.violations(ours.queues):
        return wrong
    theirs = api.list(QUEUES).items
    plan = changes.plan(ours, theirs, installation=installation)
    apply(api, plan.changes)
    return (*ours.findings, *plan.findings)


def keep_priorities(api: Api, classes: Mapping[str, int], *, installation: str) -> None:
    """Let the cluster have a PriorityClass for each of ours.

    :param classes: value by what people call it.
    """
    theirs = api.list(PRIORITIES).items
    apply(api, priorities.plan(classes, theirs, installation=installation))


def keep_topology(api: Api, *, installation: str) -> None:
    """Let HyperNodes stand for where the nodes say that they stand.

    Where somebody else keeps some, such as Volcano's own discovery, there are none of ours: a node in two trees is
    in none for Volcano.
    """
    theirs = api.list(HYPERNODES).items
    ours: tuple[names.Manifest, ...] = ()
    if all(names.is_ours(each, installation=installation) for each in theirs):
        nodes = api.list("/api/v1/nodes").items
        ours = hypernodes.hyper_nodes(domains_of(nodes), installation=installation)
    apply(api, hypernodes.plan(ours, theirs, installation=installation))


def apply(api: Api, wanted: Iterable[Change]) -> None:
    """One after the other; an order to Volcano that still stands there is not given twice."""
    for change in wanted:
        path = names.path(change.manifest)
        if change.act is Act.DELETE:
            api.delete(path)
        elif change.act is Act.COMMAND:
            ensure(api, change.manifest)
        else:
            # Made by an apply too: a field of an object that was created otherwise never goes away by one.
            api.apply(path, change.manifest)


def ensure(api: Api, manifest: names.Manifest) -> None:
    """Let there be such an object; one of its name that is there already stays as it is."""
    try:
        api.create(names.collection(manifest), manifest)
    except ApiRefused as refusal:
        if not refusal.exists:
            raise
