"""Maintenance rollouts over nodes (``controlplane.domain.health.maintenance_rollouts``)."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from apps.accounts.models import User
from apps.fleet.models import Cluster, Node
from apps.monitoring.models.faults import Isolation
from controlplane.domain.health.maintenance_rollouts import NodeState, RolloutState
from controlplane.persistence.models import UidModel
from controlplane.persistence.reasons import ReasonField


class Rollout(UidModel):
    """What is done to each of some nodes, and how far it is."""

    STATES = [(state.value, state.value) for state in RolloutState]

    name = models.CharField(max_length=120)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="rollouts")
    #: How nodes were selected and put into failure domains; empty in rollouts of earlier versions.
    labels = models.JSONField(default=dict, blank=True)
    domain_label = models.CharField(max_length=120, blank=True, default="")
    state = models.CharField(max_length=10, choices=STATES, default=RolloutState.RUNNING)
    #: Arguments of the command, run without a shell; empty: no command.
    argv = ArrayField(models.CharField(max_length=1000), default=list, blank=True)
    #: For clusters that run containers.
    image = models.CharField(max_length=300, blank=True)
    #: Timeout of the command in seconds.
    run_within = models.PositiveIntegerField(default=600)
    burn_in = models.BooleanField(default=True)
    #: Maximum number of nodes in progress.
    parallel = models.PositiveSmallIntegerField(default=1)
    #: Acts in its name; as long as they may.
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    ended_at = models.DateTimeField(null=True, blank=True)
    #: Why the rollout does not proceed; empty if it does.
    error = ReasonField()

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.name


class RolloutNode(UidModel):
    """One node of a rollout."""

    STATES = [(state.value, state.value) for state in NodeState]

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="nodes")
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="+")
    #: The failure domain that it is a part of: its leaf, its spine or whatever label was chosen.
    domain = models.CharField(max_length=120)
    state = models.CharField(max_length=10, choices=STATES, default=NodeState.WAITING)
    #: The isolation during the rollout.
    isolation = models.ForeignKey(Isolation, on_delete=models.SET_NULL, null=True, related_name="+")
    #: Number of burn-in runs of that isolation when this one was requested.
    burn_ins_before = models.PositiveIntegerField(default=0)
    #: The command was begun; its Launch is still on the cluster.
    launched_at = models.DateTimeField(null=True, blank=True)
    launch_there = models.BooleanField(default=False)
    exit_code = models.IntegerField(null=True, blank=True)
    #: The last lines of the command's output.
    log_tail = models.TextField(blank=True)
    #: Why it is where it is.
    reason = ReasonField()
    began_at = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        # As they are worked on.
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(fields=("rollout", "node"), name="rollout_node_once"),
        )

    def __str__(self) -> str:
        return f"{self.node} in {self.rollout}"

    @property
    def launch_name(self) -> str:
        return f"wave-{self.uid}"
