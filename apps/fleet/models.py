"""Clusters, their nodes and cards."""

from __future__ import annotations

from django.db import models

from controlplane.domain.accelerators import CardState
from controlplane.persistence.models import Entity


class Cluster(Entity):
    """Somewhere Launches run; ``kind`` names the adapter, ``options`` are its arguments."""

    class Binding(models.TextChoices):
        CARD = "card"
        NODE = "node"

    name = models.SlugField(max_length=40, unique=True)
    kind = models.CharField(max_length=20)
    options = models.JSONField(default=dict, blank=True)
    #: Who chooses the device: us (card) or the cluster's device plug-in (node).
    binding = models.CharField(max_length=4, choices=Binding.choices, default=Binding.CARD)
    last_seen_at = models.DateTimeField(null=True, blank=True)
    #: Why the last look at it failed; empty when it succeeded.
    trouble = models.TextField(blank=True)
    #: What keeps work apart from the product there, as its adapter says.
    isolation = models.TextField(blank=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Node(Entity):
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="nodes")
    name = models.CharField(max_length=120)
    #: Thousandths of a core.
    cpu = models.BigIntegerField(default=0)
    #: Bytes.
    memory = models.BigIntegerField(default=0)
    ready = models.BooleanField(default=True)
    #: An operator wants no new work here.
    cordoned = models.BooleanField(default=False)
    labels = models.JSONField(default=dict, blank=True)
    last_seen_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(fields=("cluster", "name"), name="node_once_in_cluster"),
        )

    def __str__(self) -> str:
        return self.name


class Card(Entity):
    """One accelerator. A slice of a card (MIG, vNPU) is a card with a parent."""

    STATES = [(state.value, state.value.replace("_", " ")) for state in CardState]

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="cards")
    index = models.PositiveIntegerField()
    chip = models.CharField(max_length=60)
    #: Bytes; 0 where the card has no memory of its own.
    memory = models.BigIntegerField(default=0)
    serial = models.CharField(max_length=80, blank=True)
    state = models.CharField(max_length=20, choices=STATES, default=CardState.USABLE)
    state_reason = models.TextField(blank=True)
    parent = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, blank=True, related_name="slices"
    )

    class Meta:
        ordering = ("node__name", "index")
        constraints = (
            models.UniqueConstraint(
                fields=("node", "index"), name="card_once_on_node", condition=models.Q(parent=None)
            ),
        )

    def __str__(self) -> str:
        return f"{self.node}/{self.index}"
