"""Rolling updates: traffic leaves old replicas before they stop, and a failed rollout returns by itself."""

from __future__ import annotations

from datetime import timedelta

from pytest_django import Settings

from apps.serving import selectors
from apps.serving.models import Deployment, Replica, Revision
from apps.serving.services import deployments as services
from apps.serving.services import gateways
from controlplane.domain.serving.lifecycle import DeploymentState, ReplicaState
from tests.integration.company import Company, ready_model
from tests.integration.serving.deployments import (
    configuration,
    endpoints,
    gateway_has,
    ready_deployment,
    reconcile,
    replicas_of,
    snapshot,
    start_replicas,
)


def revise(company: Company, deployment: Deployment) -> Revision:
    return services.deployment_revise(
        deployment=deployment,
        configuration=configuration(
            company, model_version=ready_model(team=company.team, name="tiny")
        ),
        actor=company.engineer,
        at=company.at,
    )


def test_old_replicas_stop_once_every_gateway_sends_to_the_new_ones(company: Company) -> None:
    deployment = ready_deployment(company)
    gateways.gateway_snapshot_publish(at=company.at)
    before = snapshot().version
    revise(company, deployment)
    gateway_has(company, before)
    for _ in range(3):
        start_replicas(company)

    old, new = replicas_of(deployment)
    assert endpoints("parser") == [new.uid]
    assert snapshot().version > before
    assert old.state == ReplicaState.DRAINING, "a gateway may still send requests to it"

    gateway_has(company, snapshot().version)
    company.turn_deployments()
    company.turn_deployments()
    old.refresh_from_db()
    assert old.state == ReplicaState.STOPPED


def test_a_gateway_that_does_not_poll_delays_old_replicas_for_a_minute_only(
    company: Company,
) -> None:
    deployment = ready_deployment(company)
    gateways.gateway_snapshot_publish(at=company.at)
    before = snapshot().version
    revise(company, deployment)
    gateway_has(company, before)
    for _ in range(3):
        start_replicas(company)
    company.later(timedelta(seconds=61))
    gateway_has(company, before)
    company.turn_deployments()
    company.turn_deployments()
    assert replicas_of(deployment)[0].state == ReplicaState.STOPPED


def draining_replica(company: Company) -> Replica:
    """The old replica of a rollout, which the snapshot no longer names."""
    deployment = ready_deployment(company)
    gateways.gateway_snapshot_publish(at=company.at)
    revise(company, deployment)
    gateway_has(company, snapshot().version)
    for _ in range(3):
        start_replicas(company)
    old = replicas_of(deployment)[0]
    assert old.state == ReplicaState.DRAINING
    return old


def test_an_old_replica_stops_when_no_gateway_has_open_requests_of_it(company: Company) -> None:
    old = draining_replica(company)
    for later, names in ((5, ("g1", "g2")), (300, ("g2",))):
        company.later(timedelta(seconds=later))
        for name in ("gateway", "g1", "g2"):
            open_one = old if name in names else None
            gateway_has(company, snapshot().version, draining=open_one, name=name)
        company.turn_deployments()
        old.refresh_from_db()
        assert old.state == ReplicaState.DRAINING, later
    gateway_has(company, snapshot().version, name="g2")
    company.turn_deployments()
    company.turn_deployments()
    old.refresh_from_db()
    assert old.state == ReplicaState.STOPPED


def test_open_requests_delay_an_old_replica_for_the_time_of_the_setting_only(
    company: Company, settings: Settings
) -> None:
    assert settings.NINEFOLD_REPLICA_DRAIN_SECONDS == 600
    settings.NINEFOLD_REPLICA_DRAIN_SECONDS = 90
    old = draining_replica(company)
    for later, state in ((89, ReplicaState.DRAINING), (2, ReplicaState.STOPPED)):
        company.later(timedelta(seconds=later))
        gateway_has(company, snapshot().version, draining=old)
        company.turn_deployments()
        company.turn_deployments()
        old.refresh_from_db()
        assert old.state == state


def test_open_requests_of_a_dead_gateway_delay_nothing(company: Company) -> None:
    old = draining_replica(company)
    gateway_has(company, snapshot().version, draining=old)
    company.later(selectors.GATEWAY_HEARTBEAT_TIMEOUT)
    company.turn_deployments()
    company.turn_deployments()
    old.refresh_from_db()
    assert old.state == ReplicaState.STOPPED


def test_a_revision_that_keeps_crashing_is_given_up(company: Company) -> None:
    deployment = ready_deployment(company)
    (old,) = replicas_of(deployment)
    revision = revise(company, deployment)
    reconcile(company)
    for _ in range(5):
        new = replicas_of(deployment)[-1]
        company.cluster.finish(new.launch_name, exit_code=139, message="Segmentation fault")
        company.turn_deployments()
        new.refresh_from_db()
        assert new.restart_at is not None
        company.at = new.restart_at
        company.turn_deployments()
    _assert_returned(company, deployment, old=old, failed=revision)
    revision.refresh_from_db()
    assert revision.failure_reason.startswith("a replica crashed 5 times in a row: Segmentation")

    # The next revision is rolled out as ever.
    better = revise(company, deployment)
    for _ in range(3):
        start_replicas(company)
    assert selectors.newest_revision(deployment) == better
    assert endpoints("parser") == [replicas_of(deployment)[-1].uid]


def test_a_revision_that_is_not_ready_at_its_deadline_is_given_up(company: Company) -> None:
    deployment = ready_deployment(company)
    (old,) = replicas_of(deployment)
    revision = revise(company, deployment)
    reconcile(company)
    company.later(timedelta(minutes=59))
    company.turn_deployments()
    revision.refresh_from_db()
    assert revision.failed_at is None
    company.later(timedelta(minutes=2))
    company.turn_deployments()
    company.turn_deployments()
    _assert_returned(company, deployment, old=old, failed=revision)
    revision.refresh_from_db()
    assert "0 of 1 replicas were ready 60 minutes after" in revision.failure_reason


def test_a_revision_without_cards_is_not_given_up(company: Company) -> None:
    """The company has two cards, and one replica of the new revision waits for the third."""
    deployment = ready_deployment(company, replicas=2)
    revision = revise(company, deployment)
    reconcile(company)
    company.later(timedelta(days=1))
    company.turn_deployments()
    company.turn_deployments()
    revision.refresh_from_db()
    assert revision.failed_at is None


def _assert_returned(
    company: Company, deployment: Deployment, *, old: Replica, failed: Revision
) -> None:
    for _ in range(3):
        company.turn_deployments()
    gateways.gateway_snapshot_publish(at=company.at)
    failed.refresh_from_db()
    assert failed.failed_at is not None
    assert selectors.failed_rollout(deployment) == failed
    assert endpoints("parser") == [old.uid]
    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.READY
    reasons = deployment.transitions.values_list("reason", flat=True)
    assert any("the rollout of revision 2 failed" in reason for reason in reasons)
    live = [each for each in replicas_of(deployment) if each.state != ReplicaState.STOPPED]
    assert [each.uid for each in live] == [old.uid]
