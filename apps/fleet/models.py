"""Clusters, their nodes and cards."""

from __future__ import annotations

from typing import Generic, TypeVar

from django.db import models

from controlplane.domain.common.accelerators import CardState
from controlplane.persistence.models import UidModel, VersionedModel
from controlplane.persistence.reasons import ReasonField

Row = TypeVar("Row", bound=models.Model)


class NotRemovedManager(models.Manager[Row], Generic[Row]):
    """Excludes rows that were removed with their cluster; these stay only for past jobs."""

    def get_queryset(self) -> models.QuerySet[Row]:
        return super().get_queryset().filter(removed_at=None)


class Cluster(UidModel):
    """Somewhere Launches run; ``kind`` names the adapter, ``options`` are its arguments."""

    class BindingMode(models.TextChoices):
        CARD = "card"
        NODE = "node"

    name = models.SlugField(max_length=40, unique=True)
    kind = models.CharField(max_length=20)
    options = models.JSONField(default=dict, blank=True)
    #: Who chooses the device: Ninefold (card) or the device plug-in of the cluster (node).
    binding = models.CharField(max_length=4, choices=BindingMode.choices, default=BindingMode.CARD)
    last_seen_at = models.DateTimeField(null=True, blank=True)
    #: Why the last inventory failed; empty if it succeeded.
    error = ReasonField()
    #: How workloads are isolated there, as its adapter reports.
    isolation = ReasonField()
    #: How its API is reached, encrypted (``controlplane.persistence.encryption``); None: its kind needs none.
    kubeconfig = models.BinaryField(null=True, blank=True)
    #: Version of its API; empty until the first check.
    version = models.CharField(max_length=60, blank=True, default="", db_default="")
    checked_at = models.DateTimeField(null=True, blank=True)
    #: What the last check found: ``[{"name", "verdict", "message", "remedy", "manifest"}]``.
    checks = models.JSONField(
        default=list, db_default=models.Value([], models.JSONField()), blank=True
    )
    #: Last heartbeat of the watch connection.
    reachable_at = models.DateTimeField(null=True, blank=True)
    created_by_name = models.CharField(max_length=150, blank=True, default="", db_default="")
    removed_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = NotRemovedManager["Cluster"]()

    class Meta:
        ordering = ("name",)


class Node(UidModel, VersionedModel):
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="nodes")
    name = models.CharField(max_length=120)
    #: Thousandths of a core.
    cpu = models.BigIntegerField(default=0)
    #: Bytes.
    memory = models.BigIntegerField(default=0)
    ready = models.BooleanField(default=True)
    #: Cordoned by an operator: no new workloads.
    cordoned = models.BooleanField(default=False)
    #: When the whole node was isolated; null while it is not.
    isolated_since = models.DateTimeField(null=True, blank=True, editable=False)
    #: Its cluster's node has our isolation taint, or may have it.
    tainted = models.BooleanField(default=False, db_default=False, editable=False)
    labels = models.JSONField(default=dict, blank=True)
    #: Card index → ``CardLocality.document``, as the node's agent reads it; empty where none did.
    locality = models.JSONField(
        default=dict, db_default=models.Value({}, models.JSONField()), blank=True
    )
    last_seen_at = models.DateTimeField(null=True, blank=True)
    removed_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = NotRemovedManager["Node"]()

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(fields=("cluster", "name"), name="node_once_in_cluster"),
        )


class Card(UidModel, VersionedModel):
    """One accelerator. A slice of a card (MIG, vNPU) is a card with a parent."""

    STATES = [(state.value, state.value.replace("_", " ")) for state in CardState]

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="cards")
    index = models.PositiveIntegerField()
    chip = models.CharField(max_length=60)
    #: Bytes; 0 where the card has no memory of its own.
    memory = models.BigIntegerField(default=0)
    serial = models.CharField(max_length=80, blank=True)
    state = models.CharField(max_length=20, choices=STATES, default=CardState.USABLE)
    state_reason = ReasonField()
    parent = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, blank=True, related_name="slices"
    )
    removed_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = NotRemovedManager["Card"]()

    class Meta:
        ordering = ("node__name", "index")
        constraints = (
            models.UniqueConstraint(
                fields=("node", "index"), name="card_once_on_node", condition=models.Q(parent=None)
            ),
        )

    def __str__(self) -> str:
        return f"{self.node}/{self.index}"
