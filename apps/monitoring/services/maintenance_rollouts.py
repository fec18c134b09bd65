"""Maintenance rollouts: begun, paused, resumed and cancelled by operators; advanced by a controller."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from apps.accounts.models import User
from apps.accounts.selectors import PermissionRefused, is_company_administrator
from apps.accounts.services import record_audit_entry
from apps.fleet.models import Node
from apps.fleet.selectors import require_fleet_operator
from apps.monitoring.models import Isolation, Rollout, RolloutNode
from apps.monitoring.services.isolations import (
    burn_ins_request,
    isolations_release,
    isolations_request,
)
from controlplane.domain.common.reasons import FieldRefused, Reason
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.common.topology import network_domains
from controlplane.domain.health.maintenance_rollouts import (
    NODE,
    ROLLOUT,
    NodeEvent,
    NodeState,
    RolloutEvent,
    RolloutNodeState,
    RolloutState,
    next_maintenance_nodes,
    rollout_end_event,
)

MOST_NODES, MOST_PARALLEL, MOST_ARGUMENTS = 2000, 100, 64
LONGEST_RUN = 86_400
#: Where its processes are those of this machine, a command is a matter of the company's administrators.
_OWN_MACHINE = "local"


class MaintenanceRolloutRefused(FieldRefused):
    """It cannot be like that; ``field`` is what is wrong."""


def rollout_nodes(rollout: Rollout) -> list[tuple[str, Node]]:
    """The selected nodes, each with its failure domain, in the order of the batches.

    Nodes that are isolated already are skipped.
    """
    out = Isolation.objects.filter(ended_at=None, card=None).values("node")
    rows = Node.objects.filter(cluster=rollout.cluster, cordoned=False).exclude(pk__in=out)
    wanted = dict(rollout.labels)
    if name := wanted.pop("name", ""):
        rows = rows.filter(name=name)
    if wanted:
        rows = rows.filter(labels__contains=wanted)
    found = [
        (_failure_domain_of_node(node, rollout.domain_label), node)
        for node in rows.order_by("name")
    ]
    return sorted(found, key=lambda each: (each[0], each[1].name))


def _failure_domain_of_node(node: Node, label: str) -> str:
    if label:
        return str(node.labels.get(label, ""))[:120]
    return "/".join(network_domains(node.labels).values())[:120]


@transaction.atomic
def maintenance_rollout_begin(*, rollout: Rollout, actor: User, at: datetime) -> None:
    """Save the rollout; its first nodes are isolated in the next run of the controller.

    :param rollout: not saved yet; ``created_by`` is the actor.
    :raises PermissionRefused: unless ``actor`` operates the fleet; for a command on this machine, unless they
        administer the company.
    :raises MaintenanceRolloutRefused: if a field is invalid, or no node is selected.
    """
    require_fleet_operator(actor)
    _check_rollout(rollout)
    if (
        rollout.argv
        and rollout.cluster.kind == _OWN_MACHINE
        and not is_company_administrator(actor)
    ):
        raise PermissionRefused(
            "maintenance_rollout.command.not_permitted",
            "only an administrator of the company can run a command on the Ninefold "
            "host; leave the command out, or ask an administrator",
        )
    nodes = rollout_nodes(rollout)
    if not 1 <= len(nodes) <= MOST_NODES:
        raise MaintenanceRolloutRefused(
            "maintenance_rollout.labels.invalid_node_count",
            "the labels select {nodes} usable nodes; choose labels that select 1 to {limit}",
            nodes=len(nodes),
            limit=MOST_NODES,
            field="labels",
        )
    rollout.name, rollout.created_by = rollout.name.strip(), actor
    rollout.save()
    RolloutNode.objects.bulk_create(
        RolloutNode(rollout=rollout, node=node, domain=domain, changed_at=at)
        for domain, node in nodes
    )
    _audit_rollout(
        rollout, actor=actor, action="rollout.begin", nodes=len(nodes), argv=rollout.argv
    )


def _check_rollout(rollout: Rollout) -> None:
    if not rollout.name.strip():
        raise MaintenanceRolloutRefused("name.value.missing", "enter a name", field="name")
    if not 1 <= rollout.parallel <= MOST_PARALLEL:
        raise MaintenanceRolloutRefused(
            "maintenance_rollout.parallel.out_of_range",
            "{nodes} nodes at the same time is out of range; choose 1 to {limit}",
            nodes=rollout.parallel,
            limit=MOST_PARALLEL,
            field="parallel",
        )
    if len(rollout.argv) > MOST_ARGUMENTS or any(not word or "\0" in word for word in rollout.argv):
        raise MaintenanceRolloutRefused(
            "maintenance_rollout.command.invalid",
            "a command must have at most {limit} arguments, none of them empty",
            limit=MOST_ARGUMENTS,
            field="argv",
        )
    if not 1 <= rollout.run_within <= LONGEST_RUN:
        raise MaintenanceRolloutRefused(
            "maintenance_rollout.timeout.out_of_range",
            "a command timeout of {seconds} seconds is out of range; choose 1 to {limit}",
            seconds=rollout.run_within,
            limit=LONGEST_RUN,
            field="run_within",
        )
    if not rollout.argv and not rollout.burn_in:
        raise MaintenanceRolloutRefused(
            "maintenance_rollout.action.missing",
            "a rollout requires a command, a burn-in, or both",
            field="argv",
        )


@transaction.atomic
def maintenance_rollout_control(
    *, rollout: Rollout, event: RolloutEvent, actor: User, at: datetime
) -> None:
    """Pause, resume or cancel it. What is under way ends as planned in any case.

    :raises PermissionRefused: unless ``actor`` operates the fleet.
    :raises IllegalTransition: if it is over, or so already.
    """
    require_fleet_operator(actor)
    row = Rollout.objects.select_for_update(no_key=True).get(pk=rollout.pk)
    _transition_rollout(row, event, at=at)
    _audit_rollout(row, actor=actor, action=f"rollout.{_ACTIONS[event]}")


_ACTIONS = {
    RolloutEvent.PAUSE: "pause",
    RolloutEvent.RESUME: "resume",
    RolloutEvent.CANCEL: "cancel",
}


def _audit_rollout(rollout: Rollout, *, actor: User, action: str, **detail: Any) -> None:
    record_audit_entry(rollout, actor=actor, action=action, **detail)


def _transition_rollout(row: Rollout, event: RolloutEvent, *, at: datetime) -> None:
    row.state = ROLLOUT.after(RolloutState(row.state), event)
    if RolloutState(row.state) in ROLLOUT.final:
        row.ended_at = at
        if row.state != RolloutState.DONE:
            row.nodes.filter(state=NodeState.WAITING).update(state=NodeState.SKIPPED, changed_at=at)
    row.save(update_fields=["state", "ended_at"])


# -- By the controller --


def rollout_node_states(rollout: Rollout) -> list[RolloutNodeState]:
    rows = rollout.nodes.order_by("id").values_list("id", "domain", "state")
    return [
        RolloutNodeState(key=key, domain=domain, state=NodeState(state))
        for key, domain, state in rows
    ]


@transaction.atomic
def rollout_reconcile(*, rollout: Rollout, at: datetime) -> int:
    """Isolate the nodes that may begin now, or end the rollout; return how many nodes began."""
    row = (
        Rollout.objects.select_for_update(no_key=True)
        .select_related("created_by")
        .get(pk=rollout.pk)
    )
    if row.state not in (RolloutState.RUNNING, RolloutState.PAUSED):
        return 0
    members = rollout_node_states(row)
    event = rollout_end_event(members)
    if event is not None:
        _transition_rollout(row, event, at=at)
        return 0
    keys = next_maintenance_nodes(members, state=RolloutState(row.state), parallel=row.parallel)
    beginning = list(row.nodes.filter(pk__in=keys).select_related("node").order_by("id"))
    for each in beginning:
        _isolate_rollout_node(row, each, at=at)
    return len(beginning)


def _isolate_rollout_node(rollout: Rollout, row: RolloutNode, *, at: datetime) -> None:
    standing = Isolation.objects.filter(node=row.node_id, card=None, ended_at=None)
    if standing.exists():
        reason = Reason(
            "maintenance_rollout.node.already_isolated",
            "the node was isolated outside this rollout; return it to service separately",
        )
        rollout_node_transition(row=row, event=NodeEvent.FAIL, reason=reason, at=at)
        return
    explanation = Reason(
        "maintenance_rollout.node.isolated",
        "{rollout}: isolated for maintenance",
        rollout=rollout.name,
    )
    isolations_request(nodes=[row.node.uid], reason=explanation, actor=rollout.created_by, at=at)
    row.isolation, row.began_at = standing.get(), at
    row.save(update_fields=["isolation", "began_at"])
    rollout_node_transition(
        row=row,
        event=NodeEvent.BEGIN,
        reason=Reason(
            "maintenance_rollout.node.draining", "evicting workloads with time to save a checkpoint"
        ),
        at=at,
    )


@transaction.atomic
def rollout_node_transition(
    *, row: RolloutNode, event: NodeEvent, reason: str, at: datetime
) -> None:
    """Apply one transition of a node with its effects: request a burn-in run, or release a node that is done.

    :raises IllegalTransition: if the node is in another state, or the event does not apply to it.
    """
    current = RolloutNode.objects.select_for_update(no_key=True).get(pk=row.pk)
    if current.state != row.state:
        raise IllegalTransition(machine=NODE.name, state=current.state, event=event)
    state = NODE.after(NodeState(current.state), event)
    actor = row.rollout.created_by
    isolation = row.isolation
    if isolation is not None and event is NodeEvent.TEST:
        row.burn_ins_before = isolation.burn_ins
        burn_ins_request(uids=[isolation.uid], actor=actor, at=at)
    if isolation is not None and event is NodeEvent.FINISH:
        explanation = Reason(
            "maintenance_rollout.node.finished",
            "{rollout}: maintenance finished",
            rollout=row.rollout.name,
        )
        isolations_release(uids=[isolation.uid], reason=explanation, actor=actor, at=at)
    row.state, row.reason, row.changed_at = state, reason, at
    row.save(update_fields=["state", "reason", "changed_at", "burn_ins_before"])


def maintenance_command_record_started(*, row: RolloutNode, at: datetime) -> None:
    """Record that the Launch of the command is on the cluster; idempotent."""
    RolloutNode.objects.filter(pk=row.pk, launched_at=None).update(
        launched_at=at, launch_there=True
    )


def maintenance_command_record_ended(
    *, row: RolloutNode, exit_code: int | None, log_tail: str
) -> None:
    RolloutNode.objects.filter(pk=row.pk).update(exit_code=exit_code, log_tail=log_tail)


def maintenance_command_record_removed(*, row: RolloutNode) -> None:
    RolloutNode.objects.filter(pk=row.pk).update(launch_there=False)


def maintenance_rollout_record_error(*, rollout: Rollout, reason: str) -> None:
    """Store why the rollout does not proceed; empty if it does."""
    Rollout.objects.filter(pk=rollout.pk).exclude(error=reason).update(error=reason)
