"""Controller of maintenance rollouts: advance each node in progress, then begin others.

A run that dies between any two lines is repeated: the name of a command's Launch derives from its row, and a
launch that was started and is gone counts as failed, since its effects are unknown.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db.models import Q

from apps.accounts.selectors import PermissionRefused
from apps.fleet import selectors as fleet
from apps.fleet.models import Card
from apps.monitoring.models import Isolation, Rollout, RolloutNode
from apps.monitoring.services import maintenance_rollouts
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.resources import Millicpu, Resources
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.health.isolations import IsolationState
from controlplane.domain.health.maintenance_rollouts import (
    UNDER_WAY,
    MaintenancePlan,
    NodeObservation,
    NodeState,
    RolloutState,
    next_node_event,
)
from controlplane.persistence.leases import hold_leader_lease
from controlplane.ports.adapter_registry import AdapterNotFound
from controlplane.ports.clusters import ClusterAdapter, ClusterError, LaunchRefused, ObservedLaunch
from controlplane.ports.launches import Launch, LaunchPlacement, LaunchRole

log = logging.getLogger(__name__)

LEASE = "monitoring.rollouts"
LEASE_TTL = timedelta(minutes=2)
_ROLE = "command"
_TAIL_BYTES = 8 * 1024
_GOING_ON = (RolloutState.RUNNING, RolloutState.PAUSED)


def maintenance_rollouts_reconcile(*, at: datetime) -> int:
    """Advance each node in progress by one step; return how many changed. Failures are isolated."""
    moved = 0
    with hold_leader_lease(LEASE, ttl=LEASE_TTL) as lease:
        if lease is None:
            return 0
        going_on = (
            Q(state__in=_GOING_ON) | Q(nodes__state__in=UNDER_WAY) | Q(nodes__launch_there=True)
        )
        rollouts = Rollout.objects.filter(going_on).select_related("cluster", "created_by")
        for rollout in rollouts.order_by("pk").distinct():
            if not lease.renew(ttl=LEASE_TTL):
                break
            moved += _advance_rollout(rollout, at=at)
    return moved


def _advance_rollout(rollout: Rollout, *, at: datetime) -> int:
    details, moved, reason = {"rollout": rollout.uid}, 0, ""
    busy = Q(state__in=UNDER_WAY) | Q(launch_there=True)
    rows = rollout.nodes.filter(busy).select_related(
        "rollout__created_by", "node__cluster", "isolation"
    )
    for row in rows.order_by("pk"):
        try:
            moved += _advance_node(row, at=at)
        except IllegalTransition as race:
            log.info("a node of a rollout gave way", extra={**details, "race": str(race)})
        except (ClusterError, AdapterNotFound) as error:
            reason = Reason(
                "cluster.connection.unresponsive",
                "the cluster does not respond: {error}",
                error=str(error),
            )
        except PermissionRefused as refusal:
            reason = _lost_permission_reason(rollout, refusal)
    try:
        moved += maintenance_rollouts.rollout_reconcile(rollout=rollout, at=at)
    except PermissionRefused as refusal:
        reason = _lost_permission_reason(rollout, refusal)
    maintenance_rollouts.maintenance_rollout_record_error(rollout=rollout, reason=reason)
    return moved


def _lost_permission_reason(rollout: Rollout, refusal: PermissionRefused) -> str:
    return Reason(
        "maintenance_rollout.permission.lost",
        "{user}, who created the rollout, no longer has the required permission: {reason}",
        user=rollout.created_by.username,
        reason=str(refusal),
    )


def _advance_node(row: RolloutNode, *, at: datetime) -> bool:
    plan = MaintenancePlan(
        command=bool(row.rollout.argv),
        burn_in=row.rollout.burn_in,
        parallel=row.rollout.parallel,
    )
    state = NodeState(row.state)
    if row.launch_there and state is not NodeState.WORKING:
        _remove_maintenance_command_launch(row)
    if state not in UNDER_WAY:
        return False
    seen = _observe_rollout_node(row, at=at)
    reason, event = seen.message, next_node_event(state, seen, plan=plan)
    if event is None:
        if reason and reason != row.reason:
            RolloutNode.objects.filter(pk=row.pk, state=row.state).update(reason=reason)
        return False
    maintenance_rollouts.rollout_node_transition(row=row, event=event, reason=reason, at=at)
    return True


def _observe_rollout_node(row: RolloutNode, *, at: datetime) -> NodeObservation:
    """The observed state of the node, with a reason."""
    isolation = row.isolation
    if isolation is None or isolation.ended_at is not None:
        return NodeObservation.of(
            "maintenance_rollout.node.returned_to_service",
            "returned to service by a user or a rule",
            returned=True,
        )
    if row.state == NodeState.DRAINING:
        empty = isolation.state != IsolationState.DRAINING
        return NodeObservation(
            empty=empty,
            message=Reason("maintenance_rollout.node.drained", "no workloads remain on the node")
            if empty
            else "",
        )
    if row.state == NodeState.WORKING:
        return _observe_maintenance_command(row, at=at)
    return _observe_rollout_burn_in(row, isolation)


def _observe_rollout_burn_in(row: RolloutNode, isolation: Isolation) -> NodeObservation:
    evidence = isolation.evidence
    if isolation.proved_at is not None:
        return NodeObservation.of(
            "burn_in.run.passed",
            "the burn-in passed: {result}",
            result=evidence.get("words", ""),
            proved=True,
        )
    pending = isolation.test_asked_at is not None or isolation.burn_ins <= row.burn_ins_before
    if pending or isolation.state == IsolationState.TESTING:
        return NodeObservation.of("burn_in.run.running", "the burn-in is running")
    if impossible := evidence.get("impossible"):
        return NodeObservation.of(
            "burn_in.run.impossible",
            "no burn-in is possible on the node ({reason}); return the node to service manually",
            reason=impossible,
        )
    return NodeObservation.of(
        "burn_in.run.failed",
        "the burn-in failed: {reason}",
        reason=evidence.get("words", ""),
        proved=False,
    )


def _observe_maintenance_command(row: RolloutNode, *, at: datetime) -> NodeObservation:
    adapter, name = _cluster_adapter(row), row.launch_name
    observed = adapter.observe([name]).get(name)
    if observed is None:
        if row.launched_at is not None:
            return NodeObservation.of(
                "maintenance_rollout.command.lost",
                "the process of the command no longer exists; its result is unknown",
                worked=False,
            )
        try:
            adapter.launch(_script_launch(row))
        except LaunchRefused as refusal:
            return NodeObservation.of(
                "maintenance_rollout.command.start_failed",
                "the command could not be started: {reason}",
                reason=str(refusal),
                worked=False,
            )
        maintenance_rollouts.maintenance_command_record_started(row=row, at=at)
        return NodeObservation.of("maintenance_rollout.command.running", "the command is running")
    maintenance_rollouts.maintenance_command_record_started(row=row, at=at)
    if not observed.ended:
        return NodeObservation.of("maintenance_rollout.command.running", "the command is running")
    return _record_ended_maintenance_command(row, adapter, observed)


def _record_ended_maintenance_command(
    row: RolloutNode, adapter: ClusterAdapter, observed: ObservedLaunch
) -> NodeObservation:
    chunk = adapter.log(
        row.launch_name, role=_ROLE, index=0, offset=-_TAIL_BYTES, limit=_TAIL_BYTES
    )
    one = observed.replicas[0] if observed.replicas else None
    code = None if one is None else one.exit_code
    tail = chunk.content.decode("utf-8", "replace").replace("\0", "")
    maintenance_rollouts.maintenance_command_record_ended(row=row, exit_code=code, log_tail=tail)
    if code == 0:
        return NodeObservation.of(
            "maintenance_rollout.command.succeeded", "the command succeeded", worked=True
        )
    how = f"exit code {code}" if code is not None else "without an exit code"
    return NodeObservation.of(
        "maintenance_rollout.command.failed",
        "the command failed: {reason}",
        reason=how,
        worked=False,
    )


def _script_launch(row: RolloutNode) -> Launch:
    """All cards of the node, so that the command may use any of them; rendering is deterministic."""
    indices = Card.objects.filter(node=row.node_id, parent=None).order_by("index")
    cards = tuple(indices.values_list("index", flat=True))
    return Launch(
        name=row.launch_name,
        roles=(
            LaunchRole(
                name=_ROLE,
                argv=tuple(row.rollout.argv),
                placements=(LaunchPlacement(node=row.node.name, cards=cards),),
                limits=Resources(cpu=Millicpu(1000 * max(len(cards), 1))),
            ),
        ),
        image=row.rollout.image,
        run_within=timedelta(seconds=row.rollout.run_within),
        labels={"kind": "wave", "node": row.node.uid},
    )


def _remove_maintenance_command_launch(row: RolloutNode) -> None:
    adapter = _cluster_adapter(row)
    observed = adapter.observe([row.launch_name]).get(row.launch_name)
    if observed is not None and not observed.ended:
        adapter.stop(row.launch_name, grace=timedelta())
        return
    adapter.remove(row.launch_name)
    maintenance_rollouts.maintenance_command_record_removed(row=row)


def _cluster_adapter(row: RolloutNode) -> ClusterAdapter:
    return fleet.cluster_adapter(row.node.cluster)
