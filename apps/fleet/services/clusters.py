"""Clusters that people register: looked at first, changed, looked at again, removed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Never

from django.db import IntegrityError, transaction

from apps.accounts.models import User
from apps.accounts.selectors import require
from apps.accounts.services import audit
from apps.fleet import selectors
from apps.fleet.models import Card, Cluster, Node
from controlplane.domain.accelerators import CardState
from controlplane.domain.permissions import Permission
from controlplane.persistence.encryption import encrypt, sealed_again
from controlplane.persistence.locks import AdvisoryLock, lock_in_transaction
from controlplane.ports.clusters import (
    Check,
    ClusterError,
    CredentialRefused,
    Inspectable,
    Locatable,
    Verdict,
)
from controlplane.ports.registry import UnknownAdapter

REMOVED = "its cluster was removed"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
#: Occupants that a refusal names.
_NAMED = 5
#: What says where work lies: options, and the kubeconfig by its server.
_PLACING = ("in_cluster", "kubeconfig", "namespace")


class ClusterRefused(Exception):
    """It cannot be like that; ``field`` is what is wrong."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


class ClusterUnfit(Exception):
    """Nothing could run there as it is now; ``checks`` say why, and what an administrator does about it."""

    def __init__(self, checks: tuple[Check, ...]) -> None:
        failed = [check for check in checks if check.verdict is Verdict.FAILED]
        super().__init__("; ".join(check.message for check in failed))
        self.checks = checks
        self.failed = failed


class ClusterOccupied(Exception):
    """Work still holds its cards or runs there."""

    def __init__(self, name: str, occupants: tuple[str, ...]) -> None:
        which = _first_of(occupants)
        super().__init__(f"{name} is still in use by {which}; stop or move that first")
        self.occupants = occupants


class ClusterMarked(Exception):
    """Some of its nodes bear our mark, which nobody would take off any more."""

    def __init__(self, name: str, nodes: tuple[str, ...]) -> None:
        which = _first_of(nodes)
        super().__init__(
            f"{name} bears our mark on {which}: give these nodes back first, and wait until their mark is off"
        )
        self.nodes = nodes


def _first_of(occupants: tuple[str, ...]) -> str:
    named = ", ".join(occupants[:_NAMED])
    more = len(occupants) - _NAMED
    if more > 0:
        named += f" and {more} more"
    return named


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A cluster as somebody describes it."""

    name: str
    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    binding: str = Cluster.Binding.NODE
    #: Empty: the product runs inside of that cluster, and ``in_cluster`` stands in the options.
    kubeconfig: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is None stays."""

    options: Mapping[str, Any] | None = None
    binding: str | None = None
    kubeconfig: str | None = field(default=None, repr=False)


def cluster_register(
    *, registration: Registration, actor: User, although_unfit: bool, at: datetime
) -> Cluster:
    """The cluster, after it was looked at once; its nodes appear with the next turn of the inventory.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises ClusterRefused: if something is wrong with the description.
    :raises ClusterUnfit: if a check fails, unless ``although_unfit``.
    """
    require(actor, Permission.OPERATE_FLEET, team=None)
    _described(registration)
    cluster = Cluster(
        name=registration.name,
        kind=registration.kind,
        options=dict(registration.options),
        binding=registration.binding,
        kubeconfig=_sealed(registration.kubeconfig),
        created_by_name=actor.username,
    )
    _look(cluster, although_unfit=although_unfit, at=at)
    try:
        with transaction.atomic():
            cluster.save()
            _audit(cluster, actor=actor, action="cluster.create")
    except IntegrityError:
        _refuse_taken(registration.name)
    return cluster


def cluster_change(
    *, cluster: Cluster, change: Change, actor: User, although_unfit: bool, at: datetime
) -> Cluster:
    """The cluster as it is then, looked at once more.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises ClusterRefused: if something cannot be like that, if it would be another cluster than the one that
        work runs on, or if it was removed meanwhile.
    :raises ClusterUnfit: if a check fails, unless ``although_unfit``.
    """
    require(actor, Permission.OPERATE_FLEET, team=None)
    changed = []
    if change.options is not None:
        _options(change.options)
        cluster.options = dict(change.options)
        changed.append("options")
    if change.binding is not None:
        _binding(change.binding)
        cluster.binding = change.binding
        changed.append("binding")
    if change.kubeconfig is not None:
        if cluster.kind not in selectors.REMOTE_KINDS:
            message = f"a cluster of kind {cluster.kind!r} takes no kubeconfig"
            raise ClusterRefused(message, field="kubeconfig")
        cluster.kubeconfig = _sealed(change.kubeconfig)
        changed.append("kubeconfig")
    if not changed:
        return cluster
    _look(cluster, although_unfit=although_unfit, at=at)
    with transaction.atomic():
        _stay_in_place(cluster, changed)
        cluster.save(update_fields=[*changed, "checks", "checked_at", "version"])
        _audit(cluster, actor=actor, action="cluster.change", changed=changed)
    return cluster


def cluster_check(*, cluster: Cluster, actor: User, at: datetime) -> tuple[Check, ...]:
    """Look at it once more, and keep what was found.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    """
    require(actor, Permission.OPERATE_FLEET, team=None)
    try:
        checks = _checked(cluster, at=at)
    except (ClusterError, UnknownAdapter) as error:
        checks = (Check(name="adapter", verdict=Verdict.FAILED, message=str(error)),)
        _keep(cluster, checks, at=at)
    with transaction.atomic():
        cluster.save(update_fields=["checks", "checked_at", "version"])
        _audit(cluster, actor=actor, action="cluster.check")
    return checks


def _stay_in_place(cluster: Cluster, changed: Sequence[str]) -> None:
    """Hold the row that those columns go to until the transaction ends.

    Work that is looked for elsewhere is taken to be lost, and is started a second time.

    :raises ClusterRefused: if it was removed, or would be found elsewhere while it is in use.
    """
    lock_in_transaction(AdvisoryLock.SYNC_INVENTORY, cluster.pk)
    standing = Cluster.objects.select_for_update(no_key=True).filter(pk=cluster.pk).first()
    if standing is None:
        message = f"{cluster.name} was removed meanwhile; register it anew"
        raise ClusterRefused(message, field="name")
    wanted = copy(standing)
    for column in changed:
        setattr(wanted, column, getattr(cluster, column))
    moved = _moved(standing, wanted)
    if not moved:
        return
    # Whoever is about to place work there holds its cards, and is an occupant when we have them.
    cards = Card.objects.select_for_update(no_key=True, of=("self",))
    list(cards.filter(node__cluster=standing).order_by("uid").values_list("pk", flat=True))
    if occupants := selectors.occupants_of(standing):
        raise ClusterRefused(
            f"{moved} would point {cluster.name} elsewhere while it is in use by {_first_of(occupants)}: "
            "that work would be started a second time; stop or move it first",
            field=moved,
        )


def _moved(before: Cluster, after: Cluster) -> str:
    """What points elsewhere; empty if work is found as before.

    Where the standing kubeconfig cannot be read, nobody knows its server: a new one is the only way back.
    """
    here, there = _location(before), _location(after)
    if not here or not there:
        here, there = before.options, after.options
    return next((word for word in _PLACING if here.get(word) != there.get(word)), "")


def _location(cluster: Cluster) -> Mapping[str, Any]:
    """What its work is found by; empty if that cannot be told."""
    try:
        adapter = selectors.cluster_adapter(cluster)
    except (ClusterError, UnknownAdapter):
        return {}
    return adapter.location() if isinstance(adapter, Locatable) else {}


@transaction.atomic
def cluster_remove(*, cluster: Cluster, actor: User, at: datetime) -> None:
    """Forget how it is reached, and let nothing be placed on it any more.

    What stands on the cluster itself stays there. Rows that past work points at are kept out of sight, and the
    name is free for another cluster.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises ClusterOccupied: while claims hold its cards or work runs there.
    :raises ClusterMarked: while nodes of it are out of use, or bear the mark of that still.
    """
    require(actor, Permission.OPERATE_FLEET, team=None)
    lock_in_transaction(AdvisoryLock.SYNC_INVENTORY, cluster.pk)
    # In the order in which admissions lock them: whoever comes later finds no card of this cluster.
    cards = Card.objects.select_for_update(no_key=True, of=("self",))
    held = [card.pk for card in cards.filter(node__cluster=cluster).order_by("uid")]
    if occupants := selectors.occupants_of(cluster):
        raise ClusterOccupied(cluster.name, occupants)
    if marked := selectors.marked_nodes(cluster):
        raise ClusterMarked(cluster.name, marked)
    _audit(cluster, actor=actor, action="cluster.remove")
    Card.objects.filter(pk__in=held).update(
        state=CardState.ISOLATED, state_reason=REMOVED, removed_at=at
    )
    Node.objects.filter(cluster=cluster).update(ready=False, removed_at=at)
    Cluster.objects.filter(pk=cluster.pk).update(
        name=f"{cluster.name[:31]}-{cluster.uid[:8]}",
        kubeconfig=None,
        trouble="",
        removed_at=at,
    )


def kubeconfigs_seal_again() -> int:
    """Encrypt by the first key what another one encrypted; say how many that were.

    :raises Undecryptable: if no key fits one of them.
    """
    count = 0
    keys = Cluster.objects.exclude(kubeconfig=None).order_by("pk").values_list("pk", flat=True)
    for key in keys:
        with transaction.atomic():
            row = Cluster.objects.select_for_update(no_key=True).filter(pk=key).first()
            sealed = sealed_again(row.kubeconfig) if row and row.kubeconfig else None
            if sealed is not None:
                Cluster.objects.filter(pk=key).update(kubeconfig=sealed)
                count += 1
    return count


def _described(registration: Registration) -> None:
    if not _NAME.fullmatch(registration.name):
        raise ClusterRefused(
            "a name has 1 to 40 small Latin letters, digits and hyphens, and neither begins nor ends with a "
            f"hyphen; got {registration.name!r}",
            field="name",
        )
    if Cluster.objects.filter(name=registration.name).exists():
        _refuse_taken(registration.name)
    known = selectors.remote_kinds()
    if registration.kind not in known:
        listed = ", ".join(known) or "none"
        raise ClusterRefused(
            f"clusters of kind {registration.kind!r} cannot be registered; installed: {listed}",
            field="kind",
        )
    _binding(registration.binding)
    _options(registration.options)


def _refuse_taken(name: str) -> Never:
    raise ClusterRefused(f"there is a cluster named {name} already; choose another", field="name")


def _binding(binding: str) -> None:
    if binding not in Cluster.Binding.values:
        raise ClusterRefused(f"the binding is card or node, got {binding!r}", field="binding")


def _options(options: Mapping[str, Any]) -> None:
    for word in ("kubeconfig", "installation"):
        if word in options:
            raise ClusterRefused(
                f"{word!r} is no option: a kubeconfig has a field of its own, where it is kept encrypted",
                field="options",
            )
    inside = options.get("in_cluster", False)
    if not isinstance(inside, bool):
        raise ClusterRefused(f"in_cluster is true or false, got {inside!r}", field="options")


def _sealed(kubeconfig: str) -> bytes | None:
    return encrypt(kubeconfig.encode()) if kubeconfig.strip() else None


def _look(cluster: Cluster, *, although_unfit: bool, at: datetime) -> None:
    """Check the row as it would be.

    :raises ClusterRefused: if its options or its kubeconfig cannot be used.
    :raises ClusterUnfit: if a check fails, unless ``although_unfit``.
    """
    try:
        checks = _checked(cluster, at=at)
    except CredentialRefused as refusal:
        raise ClusterRefused(str(refusal), field="kubeconfig") from refusal
    except (ClusterError, UnknownAdapter) as refusal:
        raise ClusterRefused(str(refusal), field="options") from refusal
    if not although_unfit and any(check.verdict is Verdict.FAILED for check in checks):
        raise ClusterUnfit(checks)


def _checked(cluster: Cluster, *, at: datetime) -> tuple[Check, ...]:
    """What it says of itself now, kept in the row's columns but not saved."""
    adapter = selectors.cluster_adapter(cluster)
    checks: tuple[Check, ...] = ()
    if isinstance(adapter, Inspectable):
        checks = adapter.checks()
        try:
            cluster.version = adapter.version()[:60]
        except ClusterError:
            # One of the checks says why.
            cluster.version = ""
    _keep(cluster, checks, at=at)
    return checks


def _keep(cluster: Cluster, checks: tuple[Check, ...], *, at: datetime) -> None:
    cluster.checks = [asdict(check) for check in checks]
    cluster.checked_at = at


def _audit(cluster: Cluster, *, actor: User, action: str, **detail: Any) -> None:
    audit(
        actor=actor,
        action=action,
        uid=cluster.uid,
        name=cluster.name,
        kind=cluster.kind,
        **detail,
    )
