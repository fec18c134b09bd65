"""Clusters: register, check, change, remove; rotation of kubeconfig encryption; the status of the connection."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Never, TypeAlias

from django.db import IntegrityError, transaction
from django.db.models import Q

from apps.accounts.models import User
from apps.accounts.selectors import require_permission
from apps.accounts.services import record_audit_entry
from apps.fleet import selectors
from apps.fleet.models import Card, Cluster, Node
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.permissions import Permission
from controlplane.domain.common.reasons import (
    NONE,
    FieldRefused,
    Reason,
    ReasonedError,
    join_reasons,
)
from controlplane.outbox.messages import publish_message, publish_messages
from controlplane.persistence.advisory_locks import AdvisoryLock, lock_in_transaction
from controlplane.persistence.encryption import encrypt
from controlplane.persistence.reasons import with_reasons_as_json
from controlplane.ports.adapter_registry import AdapterNotFound
from controlplane.ports.clusters import (
    CheckVerdict,
    ClusterCheck,
    ClusterError,
    CredentialRefused,
    InspectableCluster,
    InvalidClusterOption,
    LocatableCluster,
)

REMOVED = Reason("cluster.state.removed", "the cluster of this object was removed")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
#: Workloads that an error names.
_NAMED = 5
#: Options that determine where workloads are found; of the kubeconfig its server.
_LOCATION_OPTIONS = ("in_cluster", "kubeconfig", "namespace")


class ClusterRefused(FieldRefused):
    """The description is invalid; ``field`` names the invalid value."""


class ClusterChecksFailed(Exception):
    """Nothing could run there; ``checks`` say why, and how to fix it."""

    def __init__(self, checks: tuple[ClusterCheck, ...]) -> None:
        failed = [check for check in checks if check.verdict is CheckVerdict.FAILED]
        super().__init__(join_reasons(check.message for check in failed))
        self.checks = checks
        self.failed = failed


class ClusterInUse(ReasonedError):
    """Workloads still use the cluster."""

    def __init__(self, name: str, occupants: tuple[str, ...]) -> None:
        super().__init__(
            "cluster.removal.in_use",
            "cluster {cluster} is in use by {occupants}; stop or move these workloads first",
            cluster=name,
            occupants=_abbreviated_name_list(occupants),
        )
        self.occupants = occupants


class ClusterHasIsolatedNodes(ReasonedError):
    """Some of its nodes are marked as isolated; nothing would remove the mark any more."""

    def __init__(self, name: str, nodes: tuple[str, ...]) -> None:
        super().__init__(
            "cluster.removal.isolated_nodes",
            "cluster {cluster} has isolated nodes: {nodes}. Return them to service "
            "first, and wait until Ninefold has removed its taint",
            cluster=name,
            nodes=_abbreviated_name_list(nodes),
        )
        self.nodes = nodes


def _abbreviated_name_list(names: tuple[str, ...]) -> tuple[str, ...]:
    """The first names, and how many more there are."""
    more = len(names) - _NAMED
    if more <= 0:
        return names
    return (*names[:_NAMED], Reason("cluster.occupants.more", "and {count} more", count=more))


#: Returns a description of each workload that uses a cluster. The caller passes it, because jobs and deployments
#: are rows of higher apps; it is called with the cards of the cluster locked.
WorkloadsUsing: TypeAlias = Callable[[Cluster], tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRegistration:
    name: str
    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    binding: str = Cluster.BindingMode.NODE
    #: Empty: the product runs inside that cluster, and the options have ``in_cluster``.
    kubeconfig: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChange:
    """Changes of a cluster; None keeps the value."""

    options: Mapping[str, Any] | None = None
    binding: str | None = None
    kubeconfig: str | None = field(default=None, repr=False)


def cluster_register(
    *, registration: ClusterRegistration, actor: User, although_unfit: bool, at: datetime
) -> Cluster:
    """Register a cluster after its checks; its nodes appear with the next inventory.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises ClusterRefused: if the registration is invalid.
    :raises ClusterChecksFailed: if a check fails, unless ``although_unfit``.
    """
    require_permission(actor, Permission.OPERATE_FLEET, team=None)
    _validate_registration(registration)
    cluster = Cluster(
        name=registration.name,
        kind=registration.kind,
        options=dict(registration.options),
        binding=registration.binding,
        kubeconfig=_encrypt_kubeconfig(registration.kubeconfig),
        created_by_name=actor.username,
    )
    _require_passed_cluster_checks(cluster, although_unfit=although_unfit, at=at)
    try:
        with transaction.atomic():
            cluster.save()
            _audit_cluster(cluster, actor=actor, action="cluster.create")
    except IntegrityError:
        _refuse_taken_cluster_name(registration.name)
    return cluster


def cluster_change(
    *,
    cluster: Cluster,
    change: ClusterChange,
    workloads_using: WorkloadsUsing,
    actor: User,
    although_unfit: bool,
    at: datetime,
) -> Cluster:
    """Change a cluster after new checks.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises ClusterRefused: if a value is invalid, if workloads would no longer be found there, or if it was
        removed meanwhile.
    :raises ClusterChecksFailed: if a check fails, unless ``although_unfit``.
    """
    require_permission(actor, Permission.OPERATE_FLEET, team=None)
    changed = []
    if change.options is not None:
        _validate_options(change.options)
        cluster.options = dict(change.options)
        changed.append("options")
    if change.binding is not None:
        _validate_binding_mode(change.binding)
        cluster.binding = change.binding
        changed.append("binding")
    if change.kubeconfig is not None:
        if cluster.kind not in selectors.REMOTE_KINDS:
            raise ClusterRefused(
                "cluster.kubeconfig.not_supported",
                "a cluster of kind {kind} does not use a kubeconfig",
                kind=repr(cluster.kind),
                field="kubeconfig",
            )
        cluster.kubeconfig = _encrypt_kubeconfig(change.kubeconfig)
        changed.append("kubeconfig")
    if not changed:
        return cluster
    _require_passed_cluster_checks(cluster, although_unfit=although_unfit, at=at)
    with transaction.atomic():
        _check_location_unchanged(cluster, changed, workloads_using)
        cluster.save(update_fields=[*changed, "checks", "checked_at", "version"])
        _audit_cluster(cluster, actor=actor, action="cluster.change", changed=changed)
    return cluster


def cluster_check(*, cluster: Cluster, actor: User, at: datetime) -> tuple[ClusterCheck, ...]:
    """Run the checks and store their results.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    """
    require_permission(actor, Permission.OPERATE_FLEET, team=None)
    try:
        checks = _run_cluster_checks(cluster, at=at)
    except (ClusterError, AdapterNotFound) as error:
        checks = (ClusterCheck(name="adapter", verdict=CheckVerdict.FAILED, message=str(error)),)
        _store_checks(cluster, checks, at=at)
    with transaction.atomic():
        cluster.save(update_fields=["checks", "checked_at", "version"])
        _audit_cluster(cluster, actor=actor, action="cluster.check")
    return checks


def _check_location_unchanged(
    cluster: Cluster, changed: Sequence[str], workloads_using: WorkloadsUsing
) -> None:
    """Lock the row until the transaction ends and check that it still points to the same cluster.

    Workloads that are not found are considered lost and are started a second time.

    :raises ClusterRefused: if it was removed, or would point elsewhere while it is in use.
    """
    lock_in_transaction(AdvisoryLock.SYNC_INVENTORY, cluster.pk)
    stored = Cluster.objects.select_for_update(no_key=True).filter(pk=cluster.pk).first()
    if stored is None:
        raise ClusterRefused(
            "cluster.change.removed",
            "cluster {cluster} has been removed; register it again",
            cluster=cluster.name,
        )
    changed_copy = copy(stored)
    for column in changed:
        setattr(changed_copy, column, getattr(cluster, column))
    moved = _changed_location_option(stored, changed_copy)
    if not moved:
        return
    # An admission in progress holds the cards, and is counted once they are locked.
    cards = Card.objects.select_for_update(no_key=True, of=("self",))
    list(cards.filter(node__cluster=stored).order_by("uid").values_list("pk", flat=True))
    if occupants := workloads_using(stored):
        raise ClusterRefused(
            Reason(
                "cluster.change.in_use",
                "a change of {field} would point cluster {cluster} to another location "
                "while it is in use by {occupants}, and these workloads would be started "
                "a second time; stop or move them first",
                field=moved,
                cluster=cluster.name,
                occupants=_abbreviated_name_list(occupants),
            ),
            field=moved,
        )


def _changed_location_option(before: Cluster, after: Cluster) -> str:
    """Return the option that changes the location; empty if none does.

    If the stored kubeconfig cannot be decrypted, its server is unknown: a new one is always accepted.
    """
    old_location, new_location = _workload_location(before), _workload_location(after)
    if not old_location or not new_location:
        old_location, new_location = before.options, after.options
    return next(
        (
            option
            for option in _LOCATION_OPTIONS
            if old_location.get(option) != new_location.get(option)
        ),
        "",
    )


def _workload_location(cluster: Cluster) -> Mapping[str, Any]:
    """Return the location of its workloads; empty if it is unknown."""
    try:
        adapter = selectors.cluster_adapter(cluster)
    except (ClusterError, AdapterNotFound):
        return {}
    return adapter.location() if isinstance(adapter, LocatableCluster) else {}


@transaction.atomic
def cluster_remove(
    *, cluster: Cluster, workloads_using: WorkloadsUsing, actor: User, at: datetime
) -> None:
    """Remove a cluster: delete its credentials and exclude it from scheduling.

    Objects on the cluster itself stay. Rows that past jobs refer to are hidden, and the name is free again.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises ClusterInUse: while workloads use it.
    :raises ClusterHasIsolatedNodes: while nodes of it are isolated or still marked as isolated.
    """
    require_permission(actor, Permission.OPERATE_FLEET, team=None)
    lock_in_transaction(AdvisoryLock.SYNC_INVENTORY, cluster.pk)
    # In the order in which admissions lock them: whoever comes later finds no card of this cluster.
    cards = Card.objects.select_for_update(no_key=True, of=("self",))
    locked_cards = [card.pk for card in cards.filter(node__cluster=cluster).order_by("uid")]
    if occupants := workloads_using(cluster):
        raise ClusterInUse(cluster.name, occupants)
    if marked := selectors.nodes_isolated_or_tainted(cluster):
        raise ClusterHasIsolatedNodes(cluster.name, marked)
    _audit_cluster(cluster, actor=actor, action="cluster.remove")
    Card.objects.filter(pk__in=locked_cards).update(
        state=CardState.ISOLATED, state_reason=REMOVED, removed_at=at
    )
    Node.objects.filter(cluster=cluster).update(ready=False, removed_at=at)
    Cluster.objects.filter(pk=cluster.pk).update(
        name=f"{cluster.name[:31]}-{cluster.uid[:8]}",
        kubeconfig=None,
        error="",
        removed_at=at,
    )


def _validate_registration(registration: ClusterRegistration) -> None:
    if not _NAME.fullmatch(registration.name):
        raise ClusterRefused(
            "cluster.name.invalid",
            "a name must have 1 to 40 lower-case letters, digits and hyphens, and "
            "must not begin or end with a hyphen; got {name}",
            name=repr(registration.name),
            field="name",
        )
    if Cluster.objects.filter(name=registration.name).exists():
        _refuse_taken_cluster_name(registration.name)
    known = selectors.remote_cluster_kinds()
    if registration.kind not in known:
        listed = ", ".join(known) or NONE
        raise ClusterRefused(
            "cluster.kind.not_supported",
            "clusters of kind {kind} cannot be registered; installed are {kinds}",
            kind=repr(registration.kind),
            kinds=listed,
            field="kind",
        )
    _validate_binding_mode(registration.binding)
    _validate_options(registration.options)


def _refuse_taken_cluster_name(name: str) -> Never:
    raise ClusterRefused(
        "cluster.name.already_exists",
        "a cluster named {name} already exists; choose another name",
        name=name,
        field="name",
    )


def _validate_binding_mode(binding: str) -> None:
    if binding not in Cluster.BindingMode.values:
        raise ClusterRefused(
            "cluster.binding.invalid",
            "the card binding of the cluster must be card or node, got {binding}",
            binding=repr(binding),
            field="binding",
        )


def _validate_options(options: Mapping[str, Any]) -> None:
    for option in ("kubeconfig", "installation"):
        if option in options:
            raise ClusterRefused(
                "cluster.options.reserved",
                "{option} is not an option; enter the kubeconfig in its own field, where "
                "it is stored encrypted",
                option=repr(option),
                field=_option_field(option),
            )


def _option_field(option: str) -> str:
    return f"options.{option}" if option else "options"


def _encrypt_kubeconfig(kubeconfig: str) -> bytes | None:
    return encrypt(kubeconfig.encode()) if kubeconfig.strip() else None


def _require_passed_cluster_checks(cluster: Cluster, *, although_unfit: bool, at: datetime) -> None:
    """Run the checks on the unsaved row.

    :raises ClusterRefused: if its options or its kubeconfig cannot be used.
    :raises ClusterChecksFailed: if a check fails, unless ``although_unfit``.
    """
    try:
        checks = _run_cluster_checks(cluster, at=at)
    except CredentialRefused as refusal:
        raise ClusterRefused(str(refusal), field="kubeconfig") from refusal
    except (ClusterError, AdapterNotFound) as refusal:
        option = refusal.option if isinstance(refusal, InvalidClusterOption) else ""
        raise ClusterRefused(str(refusal), field=_option_field(option)) from refusal
    if not although_unfit and any(check.verdict is CheckVerdict.FAILED for check in checks):
        raise ClusterChecksFailed(checks)


def _run_cluster_checks(cluster: Cluster, *, at: datetime) -> tuple[ClusterCheck, ...]:
    """Run the checks and set their results on the row, unsaved."""
    adapter = selectors.cluster_adapter(cluster)
    checks: tuple[ClusterCheck, ...] = ()
    if isinstance(adapter, InspectableCluster):
        checks = adapter.checks()
        try:
            cluster.version = adapter.version()[:60]
        except ClusterError:
            # One of the checks reports why.
            cluster.version = ""
    _store_checks(cluster, checks, at=at)
    return checks


def _store_checks(cluster: Cluster, checks: tuple[ClusterCheck, ...], *, at: datetime) -> None:
    cluster.checks = with_reasons_as_json([asdict(check) for check in checks])
    cluster.checked_at = at


def _audit_cluster(cluster: Cluster, *, actor: User, action: str, **detail: Any) -> None:
    record_audit_entry(cluster, actor=actor, action=action, kind=cluster.kind, **detail)


def cluster_ensure(*, name: str, kind: str) -> Cluster:
    """The cluster of that name, created if absent."""
    cluster, _ = Cluster.objects.get_or_create(name=name, defaults={"kind": kind})
    return cluster


#: The leader lease of the process that watches clusters.
LEASE = "fleet.watch-clusters"
UNRESPONSIVE = Reason(
    "cluster.watch.stale",
    "the watch connection to the cluster has had no heartbeat for a minute; "
    "workloads there continue, but their state is not updated",
)
#: Names in one message: the maximum that one task reconciles.
_NAMES = 100


@transaction.atomic
def launches_changed_publish(*, names: Collection[str]) -> None:
    """Publish that these Launches may have changed."""
    ordered = sorted(names)
    starts = range(0, len(ordered), _NAMES)
    publish_messages("launches.observed", ({"names": ordered[at : at + _NAMES]} for at in starts))


@transaction.atomic
def cluster_changed_publish(*, cluster: Cluster) -> None:
    """Publish that the nodes of the cluster or their free resources may have changed."""
    publish_message("cluster.changed", cluster_uid=cluster.uid)


def cluster_reachable_record(*, cluster: Cluster, at: datetime) -> None:
    """Record a heartbeat of the watch connection."""
    Cluster.objects.filter(pk=cluster.pk).update(reachable_at=at)


def cluster_unresponsive_record(*, cluster: Cluster) -> None:
    """Record a heartbeat timeout unless another error is recorded. Nothing is isolated or stopped."""
    Cluster.objects.filter(pk=cluster.pk, error="").update(error=UNRESPONSIVE)


#: Code of this error: an inventory neither sets nor clears it.
QUEUE_SYNC_FAILED = "cluster.queue_sync.failed"
_QUEUE_SYNC_ERROR = Q(error__code=QUEUE_SYNC_FAILED)


def queue_sync_failed(*, cluster: Cluster, reason: str) -> None:
    """Record why the queue sync failed, unless another error is recorded."""
    rows = Cluster.objects.filter(Q(error="") | _QUEUE_SYNC_ERROR, pk=cluster.pk)
    rows.update(
        error=Reason(
            "cluster.queue_sync.failed",
            "the queues on the cluster are out of date: {reason}",
            reason=reason,
        )
    )


def queue_sync_succeeded(*, cluster: Cluster) -> None:
    """Clear the error of the queue sync; any other stays."""
    Cluster.objects.filter(_QUEUE_SYNC_ERROR, pk=cluster.pk).update(error="")


def cluster_error_record(*, cluster: Cluster, error: str) -> None:
    """Record why the last inventory failed. An unreachable cluster isolates nothing by itself."""
    Cluster.objects.filter(pk=cluster.pk).update(error=error)
