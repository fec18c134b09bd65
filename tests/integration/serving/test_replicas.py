"""Replicas that are pending, crash, are revoked, are unreachable or outlive their deployment."""

from __future__ import annotations

from datetime import timedelta

import pytest

from apps.quotas import services as quotas
from apps.quotas.models import Allocation, Claim
from apps.serving import reconcilers
from apps.serving.models import Replica
from apps.serving.services import deployments as services
from apps.serving.services import gateways
from controlplane.domain.quotas.claims import ClaimState, ReleaseReason
from controlplane.domain.serving.lifecycle import DeploymentState, ReplicaState
from controlplane.ports.clusters import ExitCause, ReplicaPhase
from tests.integration.company import Company
from tests.integration.serving.deployments import (
    configuration,
    create,
    endpoints,
    ready_deployment,
    reconcile,
    replicas_of,
    start_replicas,
)


def test_replica_without_cards_is_pending_with_reason(company: Company) -> None:
    deployment = create(company, replicas=3)
    reconcile(company)
    reconcile(company)

    waiting = [one for one in replicas_of(deployment) if one.state == ReplicaState.PENDING]
    assert [one.message for one in waiting] == [
        "needs 1 × 1 card of cpu; 0 of 2 are free, at most 0 on one node"
    ]


def test_a_crashed_replica_is_restarted_with_growing_delays_and_shown(company: Company) -> None:
    deployment = ready_deployment(company)
    (replica,) = replicas_of(deployment)
    delays = []
    for crash in range(1, 5):
        company.cluster.write_log(replica.launch_name, b"Segmentation fault\n")
        company.cluster.finish(
            replica.launch_name, exit_code=139, message="ended with exit code 139"
        )
        company.turn_deployments()
        company.turn_deployments()
        replica.refresh_from_db()
        assert (replica.state, replica.crashes, replica.url) == (ReplicaState.BACKOFF, crash, "")
        assert replica.message.startswith("ended with exit code 139; restart in ")
        assert replica.log_tail == "Segmentation fault\n"
        deployment.refresh_from_db()
        assert deployment.state == DeploymentState.DEGRADED
        assert "0 of 1 replicas are ready; ended with exit code 139" in deployment.state_reason
        assert replica.restart_at is not None
        delays.append(replica.restart_at - company.at)

        company.turn_deployments()
        replica.refresh_from_db()
        assert replica.generation == crash, "it did not wait"
        company.at = replica.restart_at
        company.turn_deployments()
        replica.refresh_from_db()
        assert (replica.state, replica.generation) == (ReplicaState.STARTING, crash + 1)
        company.cluster.run(replica.launch_name)
        company.turn_deployments()
        company.turn_deployments()
        deployment.refresh_from_db()
        assert deployment.state == DeploymentState.READY

    assert [delay.total_seconds() for delay in delays] == [10, 20, 40, 80]
    assert company.cluster.names() == {f"replica-{replica.uid}-5"}
    assert Allocation.objects.filter(released_at=None).count() == 1
    assert list(deployment.transitions.values_list("event", flat=True)) == [
        "become_ready",
        *["degrade", "become_ready"] * 4,
    ]


def test_a_replica_of_which_one_process_ended_gets_no_traffic_and_restarts_with_all(
    company: Company,
) -> None:
    deployment = services.deployment_create(
        actor=company.engineer,
        team=company.team,
        name="parser",
        configuration=configuration(company, spec={"further_processes": 1}),
        queue=company.queue,
        replicas=1,
    )
    start_replicas(company)
    (replica,) = replicas_of(deployment)
    first = replica.launch_name
    assert (replica.state, len(company.cluster.observe([first])[first].replicas)) == (
        ReplicaState.READY,
        2,
    )

    company.cluster.finish(first, exit_code=137, message="hung", index=1)
    company.turn_deployments()
    gateways.gateway_snapshot_publish(at=company.at)

    replica.refresh_from_db()
    assert (replica.state, replica.message) == (
        ReplicaState.BACKOFF,
        "process 1: hung; restart in 10 s (consecutive crashes: 1)",
    )
    assert endpoints("parser") == []
    company.cluster.obedient = False
    company.later(timedelta(seconds=11))
    company.turn_deployments()
    replica.refresh_from_db()
    assert (replica.state, replica.generation) == (ReplicaState.BACKOFF, 1), "cards are in use"
    company.turn_deployments()
    replica.refresh_from_db()
    assert (replica.state, replica.generation) == (ReplicaState.STARTING, 2)
    assert first not in company.cluster.names()


def test_a_replica_that_does_not_answer_gets_no_requests_until_it_does(company: Company) -> None:
    deployment = ready_deployment(company, replicas=2)
    hung, other = replicas_of(deployment)
    route = deployment.name

    def turn() -> set[str]:
        """Uids of the replicas that gateways know, after the controllers ran."""
        company.turn_deployments()
        company.turn_deployments()
        gateways.gateway_snapshot_publish(at=company.at)
        return set(endpoints(route))

    company.cluster.run(hung.launch_name, ready=False)
    assert turn() == {other.uid}
    hung.refresh_from_db()
    deployment.refresh_from_db()
    assert (hung.state, deployment.state) == (ReplicaState.STARTING, DeploymentState.DEGRADED)
    assert deployment.state_reason == "1 of 2 replicas are ready"
    # The last one too, as the endpoints of a Service.
    company.cluster.run(other.launch_name, ready=False)
    assert turn() == set()

    for each in (hung, other):
        company.cluster.run(each.launch_name)
    assert turn() == {hung.uid, other.uid}
    hung.refresh_from_db()
    deployment.refresh_from_db()
    assert (hung.state, hung.generation, hung.crashes) == (ReplicaState.READY, 1, 0)
    assert deployment.state == DeploymentState.READY


def test_backoff_is_reset_after_stable_period(company: Company) -> None:
    deployment = ready_deployment(company)
    (replica,) = replicas_of(deployment)
    Replica.objects.update(crashes=7)
    company.later(timedelta(minutes=11))
    company.cluster.finish(replica.launch_name, exit_code=1)

    company.turn_deployments()

    replica.refresh_from_db()
    assert replica.crashes == 1


def test_a_crash_while_another_replica_serves_degrades_the_deployment(company: Company) -> None:
    deployment = ready_deployment(company, replicas=2)
    first, second = replicas_of(deployment)
    company.cluster.finish(first.launch_name, exit_code=1)

    company.turn_deployments()
    company.turn_deployments()
    gateways.gateway_snapshot_publish(at=company.at)

    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.DEGRADED
    assert deployment.state_reason.startswith("1 of 2 replicas are ready")
    assert endpoints("parser") == [second.uid]


def test_model_that_cannot_be_loaded_is_never_ready_and_its_error_is_shown(
    company: Company,
) -> None:
    deployment = create(company)
    reconcile(company)
    (replica,) = replicas_of(deployment)
    company.cluster.finish(
        replica.launch_name, cause=ExitCause.NOT_PREPARED, message="no space left on device"
    )

    company.turn_deployments()
    company.turn_deployments()

    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.DEGRADED
    assert "no space left on device" in deployment.state_reason


@pytest.mark.parametrize("noticed", [True, False], ids=["ready", "admitted and not yet seen"])
def test_revoked_claim_stops_its_replica_and_a_new_one_is_created(
    company: Company, noticed: bool
) -> None:
    deployment = create(company)
    company.turn_deployments()
    company.schedule()
    if noticed:
        start_replicas(company)
    (old,) = replicas_of(deployment)
    quotas.claim_revoke(
        claim=Claim.objects.get(uid=old.claim_uid),
        reason=ReleaseReason.FAULT,
        grace=timedelta(seconds=10),
        at=company.at,
        explanation="the node is isolated",
    )

    start_replicas(company)
    start_replicas(company)

    old.refresh_from_db()
    claim = Claim.objects.get(uid=old.claim_uid)
    assert old.state == ReplicaState.STOPPED
    assert (claim.state, claim.release_reason) == (ClaimState.RELEASED, ReleaseReason.FAULT)
    new = replicas_of(deployment)[-1]
    assert (new.uid != old.uid, new.state) == (True, ReplicaState.READY)
    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.READY


def test_unreachable_cluster_only_delays_reconciliation(company: Company) -> None:
    deployment = create(company)
    reconcile(company)
    company.cluster.lose_contact()
    company.turn_deployments()
    (replica,) = replicas_of(deployment)
    assert replica.message.startswith("the cluster does not respond")

    company.cluster.regain_contact()
    start_replicas(company)

    replica.refresh_from_db()
    assert (replica.state, replica.crashes) == (ReplicaState.READY, 0)


def test_cleanup_stops_and_removes_launches_of_stopped_replicas(
    company: Company,
) -> None:
    """As if a slow worker had launched the replica after it was stopped."""
    deployment = ready_deployment(company)
    (replica,) = replicas_of(deployment)
    launch = company.cluster.launched(replica.launch_name)
    services.deployment_stop(deployment=deployment, actor=company.engineer, at=company.at)
    for _ in range(3):
        company.turn_deployments()
    company.cluster.launch(launch)
    company.cluster.run(launch.name)

    assert reconcilers.replica_launches_cleanup() == 1
    assert company.phase_of(launch.name) is ReplicaPhase.EXITED
    assert reconcilers.replica_launches_cleanup() == 1
    assert company.cluster.names() == frozenset()


def test_cleanup_keeps_launches_of_live_replicas(company: Company) -> None:
    deployment = ready_deployment(company, replicas=2)

    assert reconcilers.replica_launches_cleanup() == 0

    assert {company.phase_of(one.launch_name) for one in replicas_of(deployment)} == {
        ReplicaPhase.RUNNING
    }
