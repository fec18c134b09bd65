"""Pre-download of weights: a model version comes into the weight caches of nodes before replicas need it.

Each node gets a Launch without cards whose only input are the weights, so the cache, its lock, its verification
and its eviction are those of every other Launch. One row is one node; a second request for a node that is
downloading already returns the row that exists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from apps.accounts.models import Team, User
from apps.accounts.services import record_audit_entry
from apps.fleet import selectors as fleet
from apps.fleet.models import Cluster, Node
from apps.jobs.services import SpecRefused
from apps.models import selectors as registry_selectors
from apps.models.models import ModelVersion
from apps.serving.models import Deployment, Revision, WeightDownload, WeightDownloadTransition
from apps.serving.selectors import WEIGHTS_OWNER_KIND, nodes_of_deployment
from controlplane.domain.common.reasons import Reason, ReasonedValueError
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.serving.lifecycle import (
    ACTIVE_WEIGHT_DOWNLOAD_STATES,
    WEIGHT_DOWNLOAD,
    WeightDownloadEvent,
    WeightDownloadState,
)
from controlplane.persistence.state_transitions import apply_transition
from controlplane.ports.adapter_registry import AdapterNotFound
from controlplane.ports.artifacts import SigningStore
from controlplane.ports.clusters import ClusterError, QueueSyncingCluster, WeightCachingCluster
from controlplane.ports.launches import Launch, LaunchPlacement, LaunchRole

#: Nodes of one request.
MAX_NODES = 200
#: Retention of downloads that have ended. Their files are evicted by the rule of the weight cache.
WEIGHT_DOWNLOAD_RETENTION = timedelta(days=30)
#: After this a cluster that can do so ends a download.
_RUN_WITHIN = timedelta(hours=24)
#: A download has nothing to save.
_GRACE = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSelection:
    """Nodes of a cluster: those that match everything given here."""

    cluster: Cluster
    #: Names; empty for all.
    names: tuple[str, ...] = ()
    #: A chip that they have cards of; empty for any.
    chip: str = ""
    #: Labels that they have, such as that of their node pool.
    labels: Mapping[str, str] = field(default_factory=dict)


def weight_downloads_create(
    *, actor: User, team: Team, model_version: ModelVersion, nodes: NodeSelection
) -> list[WeightDownload]:
    """Start the download of the version's weights on the nodes; return one row for each of them, by name.

    :raises SpecRefused: if the weights do not fit the cache, there is nothing to download, or no node can be used.
    """
    size = _weights_size(model_version)
    if refusal := _cluster_refusal(nodes.cluster, size=size):
        raise SpecRefused([FieldFinding(field="cluster", message=refusal)])
    selected = _selected_nodes(nodes)
    with transaction.atomic():
        rows = _rows_create(
            actor=actor, team=team, model_version=model_version, nodes=selected, size=size
        )
        record_audit_entry(
            actor=actor,
            action="weights.download",
            team=team,
            uid=model_version.uid,
            name=str(model_version),
            cluster=nodes.cluster.name,
            nodes=[node.name for node in selected],
        )
    return rows


def _rows_create(
    *, actor: User, team: Team, model_version: ModelVersion, nodes: Sequence[Node], size: int
) -> list[WeightDownload]:
    # A node that downloads them already keeps its row: it may be active once.
    WeightDownload.objects.bulk_create(
        (
            WeightDownload(
                team=team,
                model_version=model_version,
                node=node,
                created_by=actor,
                size=size,
                state=WeightDownloadState.PENDING,
                message=Reason("launch.state.starting", "starting"),
            )
            for node in nodes
        ),
        ignore_conflicts=True,
    )
    active = WeightDownload.objects.filter(
        team=team,
        model_version=model_version,
        node__in=nodes,
        state__in=ACTIVE_WEIGHT_DOWNLOAD_STATES,
    )
    return list(active.select_related("node__cluster").order_by("node__name"))


def _weights_size(version: ModelVersion) -> int:
    """Bytes of its files; a file that it has twice counts once.

    :raises SpecRefused: if its files are not in the artifact store.
    """
    artifact = version.artifact
    if artifact is None or artifact.removed_at is not None:
        raise SpecRefused.of(
            "model_version",
            "model_version.files.missing",
            "{version} has no files",
            version=str(version),
        )
    return sum({each["digest"]: int(each["size"]) for each in artifact.files}.values())


def _chooses_nodes(cluster: Cluster) -> bool:
    """Whether its own scheduler does, so that the nodes of a claim are a forecast."""
    return isinstance(fleet.cluster_adapter(cluster), QueueSyncingCluster)


def _cluster_refusal(cluster: Cluster, *, size: int) -> str:
    """Why weights of that many bytes cannot be downloaded to its nodes in advance; empty if they can."""
    try:
        adapter = fleet.cluster_adapter(cluster)
    except (ClusterError, AdapterNotFound) as error:
        return str(error)
    if (
        not isinstance(adapter, WeightCachingCluster)
        or (limit := adapter.weight_cache_limit) is None
    ):
        return Reason(
            "weights.cluster.no_cache",
            "the nodes of the cluster {cluster} have no weight cache that can be filled in advance; it "
            "requires the kind local, or kubernetes or volcano with the option cache",
            cluster=cluster.name,
        )
    if not adapter.downloads_inputs or not isinstance(
        registry_selectors.artifact_store(), SigningStore
    ):
        return Reason(
            "weights.cluster.reads_store",
            "the nodes of the cluster {cluster} read the artifact store directly: there is nothing to "
            "download",
            cluster=cluster.name,
        )
    if size > limit:
        return Reason(
            "weights.cache.too_small",
            "the weights have {size} bytes; the weight cache of a node of {cluster} is limited to {limit} "
            "bytes: increase its limit",
            size=size,
            cluster=cluster.name,
            limit=limit,
        )
    return ""


def _selected_nodes(selection: NodeSelection) -> list[Node]:
    """:raises SpecRefused: if a named node cannot be used, or none is left, or there are too many."""
    rows = Node.objects.filter(cluster=selection.cluster)
    if selection.chip:
        rows = rows.filter(cards__chip=selection.chip).distinct()
    if selection.labels:
        rows = rows.filter(labels__contains=dict(selection.labels))
    if selection.names:
        rows = rows.filter(name__in=selection.names)
    nodes = list(rows.order_by("name"))
    usable = [each for each in nodes if _is_usable(each)]
    refusal = ""
    if absent := sorted(set(selection.names) - {each.name for each in usable}):
        refusal = Reason(
            "weights.nodes.unusable",
            "nodes that do not match, or that are not ready, cordoned or isolated: {nodes}",
            nodes=", ".join(absent),
        )
    elif not usable:
        refusal = Reason(
            "weights.nodes.none",
            "no node of {cluster} that is ready and not cordoned matches; nodes that match otherwise: {count}",
            cluster=selection.cluster.name,
            count=len(nodes),
        )
    elif len(usable) > MAX_NODES:
        refusal = Reason(
            "weights.nodes.too_many",
            "the number of nodes is {count}; it must be at most {limit}",
            count=len(usable),
            limit=MAX_NODES,
        )
    if refusal:
        raise SpecRefused([FieldFinding(field="nodes", message=refusal)])
    return usable


def _is_usable(node: Node) -> bool:
    return node.ready and not node.cordoned and node.isolated_since is None


def weight_download_launch(row: WeightDownload) -> Launch:
    """The Launch that downloads the weights: its preparation does, its program does nothing.

    :raises ArtifactError: if the files were removed.
    :raises ValueError: if the version has none.
    """
    artifact = row.model_version.artifact
    if artifact is None:
        raise ReasonedValueError(
            "model_version.files.missing", "{version} has no files", version=str(row.model_version)
        )
    return Launch(
        name=row.launch_name,
        roles=(
            LaunchRole(
                name="weights",
                argv=("{python}", "-c", "print('the weights are in the weight cache')"),
                placements=(LaunchPlacement(node=row.node.name),),
            ),
        ),
        inputs=(registry_selectors.input_tree("model", artifact),),
        pinned=True,
        run_within=_RUN_WITHIN,
        grace=_GRACE,
        labels={"team": row.team.slug, "kind": WEIGHTS_OWNER_KIND, "uid": row.uid},
    )


def weight_download_transition(
    row: WeightDownload, event: WeightDownloadEvent, *, at: datetime, reason: str, **changes: Any
) -> None:
    """:raises IllegalTransition: if it was cancelled meanwhile."""
    target = WEIGHT_DOWNLOAD.after(WeightDownloadState(row.state), event)
    if target in WEIGHT_DOWNLOAD.final:
        changes["ended_at"] = at
    apply_transition(
        row,
        WEIGHT_DOWNLOAD,
        event,
        into=WeightDownloadTransition,
        at=at,
        reason=reason,
        lease_token=row.lease_token,
        message=reason,
        **changes,
    )


@transaction.atomic
def weight_download_delete(*, row: WeightDownload, actor: User, at: datetime) -> bool:
    """Cancel a download that has not ended, or delete the row of one that has; return whether it was deleted.

    What is in the cache stays there. Cancelling twice changes nothing.
    """
    locked = WeightDownload.objects.select_for_update().get(pk=row.pk)
    state = WeightDownloadState(locked.state)
    if state in WEIGHT_DOWNLOAD.final:
        _audit(row, actor=actor, action="weights.delete")
        locked.delete()
        return True
    if state is not WeightDownloadState.STOPPING:
        apply_transition(
            locked,
            WEIGHT_DOWNLOAD,
            WeightDownloadEvent.CANCEL,
            into=WeightDownloadTransition,
            at=at,
            reason=Reason("weights.state.cancelled", "cancelled by {user}", user=actor.username),
            actor=actor.username,
            message=Reason("weights.state.cancelled", "cancelled by {user}", user=actor.username),
        )
        _audit(row, actor=actor, action="weights.cancel")
    return False


def weight_downloads_prune(*, at: datetime) -> int:
    """Delete downloads that ended before their retention; return their number."""
    expired = WeightDownload.objects.filter(
        state__in=WEIGHT_DOWNLOAD.final, ended_at__lt=at - WEIGHT_DOWNLOAD_RETENTION
    )
    return expired.delete()[1].get(WeightDownload._meta.label, 0)


def _audit(row: WeightDownload, *, actor: User, action: str) -> None:
    record_audit_entry(
        actor=actor, action=action, team=row.team, uid=row.uid, name=str(row), node=row.node.name
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutWeights:
    """Weight downloads of a rollout."""

    #: Nodes whose download has not ended.
    pending: int
    #: Nodes that have the weights.
    done: int
    nodes: int


def rollout_weights_download(
    *,
    deployment: Deployment,
    revision: Revision,
    serving: Revision,
    within: timedelta,
    at: datetime,
) -> RolloutWeights | None:
    """Have the weights of a new revision on the nodes of the deployment's replicas; None where it cannot be done.

    A rollout is not held up by what goes wrong here: replicas download what is missing. Nothing is ``pending``
    any more after ``within``.
    """
    if revision.model_version.artifact_id in (None, serving.model_version.artifact_id):
        return None
    nodes = [node for node in nodes_of_deployment(deployment) if _is_usable(node)]
    asked = WeightDownload.objects.filter(
        team=deployment.team,
        model_version=revision.model_version,
        node__in=nodes,
        created_at__gte=revision.created_at,
    )
    rows = list(asked)
    if not rows:
        rows = _rollout_rows_create(deployment, revision, nodes)
    if not rows:
        return None
    late = at - min(row.created_at for row in rows) > within
    pending = sum(row.state in ACTIVE_WEIGHT_DOWNLOAD_STATES for row in rows)
    return RolloutWeights(
        pending=0 if late else pending,
        done=sum(row.state == WeightDownloadState.SUCCEEDED for row in rows),
        nodes=len(rows),
    )


def _rollout_rows_create(
    deployment: Deployment, revision: Revision, nodes: Sequence[Node]
) -> list[WeightDownload]:
    try:
        size = _weights_size(revision.model_version)
    except SpecRefused:
        return []
    by_cluster: dict[Cluster, list[Node]] = {}
    for node in nodes:
        by_cluster.setdefault(node.cluster, []).append(node)
    possible = [
        node
        for cluster, its_nodes in by_cluster.items()
        if not _cluster_refusal(cluster, size=size) and not _chooses_nodes(cluster)
        for node in its_nodes
    ]
    with transaction.atomic():
        return _rows_create(
            actor=revision.created_by,
            team=deployment.team,
            model_version=revision.model_version,
            nodes=possible,
            size=size,
        )
