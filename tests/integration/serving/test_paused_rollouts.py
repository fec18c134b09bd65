"""Rollouts in batches, paused, resumed and undone, with the reconcilers on the fake cluster."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from apps.accounts.models import AuditEntry
from apps.serving import selectors
from apps.serving.models import Deployment, Replica, Revision
from apps.serving.selectors.deployments import rollout_status
from apps.serving.services import deployments as services
from apps.serving.services import gateways, rollouts
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.serving.lifecycle import DeploymentState, ReplicaState
from controlplane.domain.serving.rollouts import RolloutPhase, RolloutStrategy
from tests.integration.company import Company
from tests.integration.serving.deployments import (
    configuration,
    endpoints,
    ready_deployment,
    reconcile,
    replicas_of,
    snapshot,
    start_replicas,
)


def revise(company: Company, deployment: Deployment) -> Revision:
    return services.deployment_revise(
        deployment=deployment,
        configuration=configuration(company),
        actor=company.engineer,
        at=company.at,
    )


def live(deployment: Deployment, revision: int) -> list[Replica]:
    return [
        each
        for each in replicas_of(deployment)
        if each.state != ReplicaState.STOPPED and each.backend.revision.number == revision
    ]


def one_by_one(company: Company, deployment: Deployment) -> None:
    """Replace replicas in place: the company has two cards."""
    rollouts.rollout_strategy_set(
        deployment=deployment,
        strategy=RolloutStrategy(max_surge="0", max_unavailable="1"),
        actor=company.engineer,
    )


def until_updated(company: Company, deployment: Deployment) -> Replica:
    """Reconcile until a replica of revision 2 has been launched."""
    for _ in range(6):
        reconcile(company)
        for replica in live(deployment, 2):
            if replica.state == ReplicaState.STARTING:
                return replica
    raise AssertionError([(each.state, each.message) for each in replicas_of(deployment)])


def test_a_rollout_replaces_one_replica_at_a_time_and_both_revisions_serve(
    company: Company,
) -> None:
    deployment = ready_deployment(company, replicas=2)
    one_by_one(company, deployment)
    revise(company, deployment)
    new = until_updated(company, deployment)
    (old,) = live(deployment, 1)
    company.cluster.run(new.launch_name)
    company.turn_deployments()
    gateways.gateway_snapshot_publish(at=company.at)
    assert endpoints("parser") == [old.uid, new.uid]
    (route,) = json.loads(gateways.gateway_snapshot_body(snapshot()))["routes"]
    assert [backend["weight"] for backend in route["backends"]] == [100, 100]

    for _ in range(6):
        start_replicas(company)
    assert (len(live(deployment, 1)), len(live(deployment, 2))) == (0, 2)
    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.READY
    assert rollout_status(deployment).phase is RolloutPhase.COMPLETE


def test_a_paused_rollout_starts_and_stops_nothing_and_its_deadline_does_not_run(
    company: Company,
) -> None:
    deployment = ready_deployment(company, replicas=2)
    one_by_one(company, deployment)
    revision = revise(company, deployment)
    new = until_updated(company, deployment)
    rollouts.rollout_pause(deployment=deployment, actor=company.engineer, at=company.at)
    before = {each.uid: each.state for each in replicas_of(deployment)}
    assert set(before.values()) == {ReplicaState.READY, ReplicaState.STARTING, ReplicaState.STOPPED}

    for _ in range(3):
        company.later(timedelta(hours=1))
        reconcile(company)
    assert {each.uid: each.state for each in replicas_of(deployment)} == before
    company.cluster.run(new.launch_name)
    for _ in range(3):
        reconcile(company)
    assert [each.state for each in (*live(deployment, 1), *live(deployment, 2))] == ["ready"] * 2
    deployment.refresh_from_db()
    assert rollout_status(deployment).phase is RolloutPhase.PAUSED
    with pytest.raises(IllegalTransition, match="a rollout that is paused cannot be undone"):
        rollouts.rollout_undo(deployment=deployment, actor=company.engineer, at=company.at)

    rollouts.rollout_resume(deployment=deployment, actor=company.engineer, at=company.at)
    company.later(timedelta(minutes=59))
    reconcile(company)
    revision.refresh_from_db()
    assert revision.failed_at is None
    for _ in range(6):
        start_replicas(company)
    assert (len(live(deployment, 1)), len(live(deployment, 2))) == (0, 2)
    actions = AuditEntry.objects.filter(action__endswith="_rollout").order_by("id")
    assert [each.action for each in actions] == [
        "deployment.pause_rollout",
        "deployment.resume_rollout",
    ]


def test_a_revision_that_is_created_during_a_pause_waits(company: Company) -> None:
    deployment = ready_deployment(company)
    (old,) = replicas_of(deployment)
    rollouts.rollout_pause(deployment=deployment, actor=company.engineer, at=company.at)
    revise(company, deployment)
    reconcile(company)
    assert replicas_of(deployment) == [old]
    # What the cluster evicts is replaced by the revision that serves.
    services.deployment_scale(
        deployment=deployment, replicas=2, actor=company.engineer, at=company.at
    )
    start_replicas(company)
    assert [each.backend.revision.number for each in replicas_of(deployment)] == [1, 1]


def test_an_undone_rollout_keeps_the_replicas_that_serve(company: Company) -> None:
    deployment = ready_deployment(company)
    (old,) = replicas_of(deployment)
    revise(company, deployment)
    reconcile(company)
    returned = rollouts.rollout_undo(deployment=deployment, actor=company.engineer, at=company.at)
    assert returned.number == 1
    for _ in range(3):
        company.turn_deployments()
    assert [each.uid for each in live(deployment, 1)] == [old.uid]
    assert live(deployment, 2) == []
    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.READY
    assert selectors.newest_revision(deployment).number == 1
    gateways.gateway_snapshot_publish(at=company.at)
    assert endpoints("parser") == [old.uid]
