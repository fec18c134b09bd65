"""Deployments on the fake cluster, turned by hand: start, crash, scale, revise, stop."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from apps.accounts.models import AuditEntry
from apps.jobs.services import SpecRefused
from apps.quotas import services as quotas
from apps.quotas.models import Allocation, Claim
from apps.serving import selectors
from apps.serving.models import Deployment, GatewaySnapshot, Replica, Route
from apps.serving.reconcilers import sweeps
from apps.serving.services import deployments as services
from apps.serving.services import snapshots
from apps.serving.services.configurations import Configuration, configuration_check
from controlplane.domain.claims import ClaimState, ReleaseReason
from controlplane.domain.machines import IllegalTransition
from controlplane.domain.serving import DeploymentState, ReplicaState
from controlplane.persistence.leases import lease_rows
from controlplane.persistence.moves import LeaseLost
from controlplane.ports.clusters import ExitCause, Phase
from tests.integration.company import ENGINE, Company, ready_model
from tests.integration.threads import at_once, raised


def configuration(company: Company, **changes: Any) -> Configuration:
    return Configuration(**{"model_version": company.model, "engine": ENGINE, **changes})


def create(company: Company, name: str = "parser", replicas: int = 1) -> Deployment:
    return services.deployment_create(
        actor=company.engineer,
        team=company.team,
        name=name,
        configuration=configuration(company),
        queue=company.queue,
        replicas=replicas,
    )


def turn(company: Company) -> None:
    company.turn_deployments()
    company.schedule()
    company.turn_deployments()


def serve_all(company: Company) -> None:
    """Every process that was started answers its probe; the loops notice."""
    turn(company)
    for name in company.cluster.names():
        if company.phase_of(name) is Phase.PREPARING:
            company.cluster.run(name)
    company.turn_deployments()
    company.turn_deployments()


def serving(company: Company, replicas: int = 1) -> Deployment:
    deployment = create(company, replicas=replicas)
    serve_all(company)
    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.READY
    return deployment


def replicas_of(deployment: Deployment) -> list[Replica]:
    return list(Replica.objects.filter(backend__revision__deployment=deployment).order_by("id"))


def endpoints(name: str) -> list[str]:
    (route,) = [
        route
        for route in json.loads(snapshots.snapshot_body(snapshot()))["routes"]
        if route["name"] == name
    ]
    return [endpoint["uid"] for backend in route["backends"] for endpoint in backend["endpoints"]]


def snapshot() -> GatewaySnapshot:
    latest = selectors.latest_snapshot()
    assert latest is not None
    return latest


def test_a_deployment_becomes_ready_and_is_told_to_gateways(company: Company) -> None:
    deployment = create(company, replicas=2)
    assert deployment.state == DeploymentState.STARTING
    serve_all(company)

    deployment.refresh_from_db()
    assert (deployment.state, deployment.state_reason) == ("ready", "2 of 2 replicas are ready")
    snapshots.snapshot_publish(at=company.at)
    replicas = replicas_of(deployment)
    assert endpoints("parser") == [replica.uid for replica in replicas]
    assert all(replica.url.startswith("http://127.0.0.1:") for replica in replicas)
    credentials = {selectors.engine_key(replica) for replica in replicas}
    assert len(credentials) == 2
    (visible,) = map(vars, selectors.deployments_visible(company.engineer))
    assert visible["ready_replicas"] == 2
    assert list(selectors.deployments_visible(company.stranger)) == []


def test_the_engine_requires_the_key_that_the_gateway_is_told(company: Company) -> None:
    deployment = serving(company)
    (replica,) = replicas_of(deployment)

    launch = company.cluster.launched(replica.launch_name)

    assert launch.secrets["NINEFOLD_ENGINE_KEY"] == selectors.engine_key(replica)
    assert json.loads(launch.files["spec.json"])["model_name"] == "parser"


def test_a_replica_without_cards_waits_and_says_why(company: Company) -> None:
    deployment = create(company, replicas=3)
    turn(company)
    turn(company)

    waiting = [one for one in replicas_of(deployment) if one.state == ReplicaState.PENDING]
    assert [one.message for one in waiting] == [
        "needs 1 × 1 card of cpu; 0 of 2 are free, at most 0 on one node"
    ]


def test_a_crashed_replica_is_restarted_with_growing_delays_and_shown(company: Company) -> None:
    deployment = serving(company)
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
        assert replica.message.startswith("ended with exit code 139; restarts in ")
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

    assert [delay.total_seconds() for delay in delays] == [1, 2, 4, 8]
    assert company.cluster.names() == {f"replica-{replica.uid}-5"}
    assert Allocation.objects.filter(released_at=None).count() == 1
    assert list(deployment.transitions.values_list("event", flat=True)) == [
        "become_ready",
        *["degrade", "become_ready"] * 4,
    ]


def test_crashes_long_ago_are_forgiven(company: Company) -> None:
    deployment = serving(company)
    (replica,) = replicas_of(deployment)
    Replica.objects.update(crashes=7)
    company.later(timedelta(minutes=11))
    company.cluster.finish(replica.launch_name, exit_code=1)

    company.turn_deployments()

    replica.refresh_from_db()
    assert replica.crashes == 1


def test_a_crash_while_another_replica_serves_degrades_the_deployment(company: Company) -> None:
    deployment = serving(company, replicas=2)
    first, second = replicas_of(deployment)
    company.cluster.finish(first.launch_name, exit_code=1)

    company.turn_deployments()
    company.turn_deployments()
    snapshots.snapshot_publish(at=company.at)

    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.DEGRADED
    assert deployment.state_reason.startswith("1 of 2 replicas are ready")
    assert endpoints("parser") == [second.uid]


def test_a_model_that_cannot_be_loaded_never_serves_and_its_words_are_shown(
    company: Company,
) -> None:
    deployment = create(company)
    turn(company)
    (replica,) = replicas_of(deployment)
    company.cluster.finish(
        replica.launch_name, cause=ExitCause.NOT_PREPARED, message="no space left on device"
    )

    company.turn_deployments()
    company.turn_deployments()

    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.DEGRADED
    assert "no space left on device" in deployment.state_reason


def test_scaling_up_adds_and_scaling_down_removes_the_youngest(company: Company) -> None:
    deployment = serving(company)
    services.deployment_scale(
        deployment=deployment, replicas=2, actor=company.engineer, at=company.at
    )
    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.STARTING
    serve_all(company)
    older, younger = replicas_of(deployment)
    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.READY

    services.deployment_scale(
        deployment=deployment, replicas=1, actor=company.engineer, at=company.at
    )
    company.turn_deployments()
    company.turn_deployments()

    older.refresh_from_db()
    younger.refresh_from_db()
    assert (older.state, younger.state) == (ReplicaState.READY, ReplicaState.STOPPED)
    assert Allocation.objects.filter(released_at=None).count() == 1
    assert company.cluster.names() == {older.launch_name}


@pytest.mark.parametrize("replicas", [0, -1, 65])
def test_a_scale_out_of_bounds_is_refused(company: Company, replicas: int) -> None:
    deployment = serving(company)
    with pytest.raises(SpecRefused, match=f"must be 1 to 64, got {replicas}"):
        services.deployment_scale(
            deployment=deployment, replicas=replicas, actor=company.engineer, at=company.at
        )


def test_a_new_revision_takes_the_traffic_only_once_it_is_ready(company: Company) -> None:
    deployment = serving(company)
    (old,) = replicas_of(deployment)
    better = ready_model(team=company.team, name="tiny")

    revision = services.deployment_revise(
        deployment=deployment,
        configuration=configuration(company, model_version=better),
        actor=company.engineer,
        at=company.at,
    )
    turn(company)
    snapshots.snapshot_publish(at=company.at)
    assert endpoints("parser") == [old.uid]
    new = replicas_of(deployment)[-1]
    company.cluster.run(new.launch_name)
    company.turn_deployments()
    snapshots.snapshot_publish(at=company.at)
    assert endpoints("parser") == [old.uid]

    company.turn_deployments()
    snapshots.snapshot_publish(at=company.at)
    assert endpoints("parser") == [new.uid]
    company.turn_deployments()

    old.refresh_from_db()
    assert (old.state, new.backend.revision) == (ReplicaState.STOPPED, revision)
    assert company.cluster.names() == {new.launch_name}


def test_a_revision_that_crashes_leaves_the_old_one_serving(company: Company) -> None:
    deployment = serving(company)
    (old,) = replicas_of(deployment)
    services.deployment_revise(
        deployment=deployment,
        configuration=configuration(company),
        actor=company.engineer,
        at=company.at,
    )
    turn(company)
    company.cluster.finish(replicas_of(deployment)[-1].launch_name, exit_code=1)

    for _ in range(3):
        company.turn_deployments()
    snapshots.snapshot_publish(at=company.at)

    assert endpoints("parser") == [old.uid]
    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.DEGRADED


def test_a_deployment_stops_starts_again_and_is_deleted(company: Company) -> None:
    deployment = serving(company)
    services.deployment_stop(deployment=deployment, actor=company.engineer, at=company.at)
    for _ in range(3):
        company.turn_deployments()
    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.STOPPED
    assert company.cluster.names() == frozenset()
    assert not Allocation.objects.filter(released_at=None).exists()
    snapshots.snapshot_publish(at=company.at)
    assert endpoints("parser") == []

    services.deployment_start(deployment=deployment, actor=company.engineer, at=company.at)
    serve_all(company)
    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.READY

    with pytest.raises(IllegalTransition, match="be deleted before it is stopped"):
        services.deployment_delete(deployment=deployment, actor=company.engineer, at=company.at)
    services.deployment_stop(deployment=deployment, actor=company.engineer, at=company.at)
    for _ in range(3):
        company.turn_deployments()
    services.deployment_delete(deployment=deployment, actor=company.engineer, at=company.at)

    assert not Route.objects.exists()
    assert list(selectors.deployments_visible(company.engineer)) == []
    actions = AuditEntry.objects.filter(action__startswith="deployment.").order_by("id")
    assert [entry.action.split(".")[1] for entry in actions] == [
        "create",
        "stop",
        "start",
        "stop",
        "delete",
    ]
    create(company, name="parser")


def test_a_deleted_deployment_cannot_be_started(company: Company) -> None:
    deployment = create(company)
    services.deployment_stop(deployment=deployment, actor=company.engineer, at=company.at)
    for _ in range(2):
        company.turn_deployments()
    services.deployment_delete(deployment=deployment, actor=company.engineer, at=company.at)

    with pytest.raises(IllegalTransition, match="a deployment that is deleted cannot change"):
        services.deployment_start(deployment=deployment, actor=company.engineer, at=company.at)


def test_a_stopped_deployment_cannot_be_scaled_or_stopped_again(company: Company) -> None:
    deployment = create(company)
    services.deployment_stop(deployment=deployment, actor=company.engineer, at=company.at)

    with pytest.raises(IllegalTransition):
        services.deployment_scale(
            deployment=deployment, replicas=2, actor=company.engineer, at=company.at
        )
    with pytest.raises(IllegalTransition):
        services.deployment_stop(deployment=deployment, actor=company.engineer, at=company.at)
    deployment.refresh_from_db()
    assert deployment.replica_count == 1


def test_a_name_that_is_taken_is_refused_with_a_sentence(company: Company) -> None:
    create(company)
    with pytest.raises(SpecRefused, match="'parser' is taken"):
        create(company)
    assert Deployment.objects.count() == 1


def test_each_thing_wrong_with_a_configuration_is_named(company: Company) -> None:
    company.model.state = "importing"
    bad = configuration(company, chips=("tpu-v9",), cards=0)

    findings = configuration_check(bad, replicas=0)

    assert {one.field for one in findings} == {"model_version", "replicas", "cards", "chips"}


@pytest.mark.parametrize("noticed", [True, False], ids=["ready", "admitted and not yet seen"])
def test_a_revoked_claim_stops_its_replica_and_a_new_one_takes_its_place(
    company: Company, noticed: bool
) -> None:
    deployment = create(company)
    company.turn_deployments()
    company.schedule()
    if noticed:
        serve_all(company)
    (old,) = replicas_of(deployment)
    quotas.claim_revoke(
        claim=Claim.objects.get(uid=old.claim_uid),
        reason=ReleaseReason.DRAIN,
        grace=timedelta(seconds=10),
        at=company.at,
        why="the node is drained",
    )

    serve_all(company)
    serve_all(company)

    old.refresh_from_db()
    claim = Claim.objects.get(uid=old.claim_uid)
    assert old.state == ReplicaState.STOPPED
    assert (claim.state, claim.release_reason) == (ClaimState.RELEASED, ReleaseReason.DRAIN)
    new = replicas_of(deployment)[-1]
    assert (new.uid != old.uid, new.state) == (True, ReplicaState.READY)
    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.READY


def test_a_cluster_that_does_not_answer_only_delays(company: Company) -> None:
    deployment = create(company)
    turn(company)
    company.cluster.lose_contact()
    company.turn_deployments()
    (replica,) = replicas_of(deployment)
    assert replica.message.startswith("the cluster does not answer")

    company.cluster.regain_contact()
    serve_all(company)

    replica.refresh_from_db()
    assert (replica.state, replica.crashes) == (ReplicaState.READY, 0)


def test_a_slow_worker_adds_no_replicas_once_its_lease_is_lost(company: Company) -> None:
    deployment = create(company)
    (slow,) = lease_rows(Deployment.objects.all(), limit=1, ttl=timedelta(minutes=1))
    Deployment.objects.update(lease_token=slow.lease_token + 1)
    backend = selectors.newest_revision(deployment).backends.get()

    with pytest.raises(LeaseLost):
        services.replicas_add(backend=backend, deployment=slow, count=1)

    assert replicas_of(deployment) == []


def test_no_replica_is_added_to_a_deployment_that_is_being_stopped(company: Company) -> None:
    deployment = create(company)
    services.deployment_stop(deployment=deployment, actor=company.engineer, at=company.at)
    deployment.refresh_from_db()
    backend = selectors.newest_revision(deployment).backends.get()

    with pytest.raises(
        IllegalTransition, match="a deployment that is stopping cannot get replicas"
    ):
        services.replicas_add(backend=backend, deployment=deployment, count=1)


def test_what_serves_although_it_was_stopped_is_stopped_and_removed_by_the_sweep(
    company: Company,
) -> None:
    """A worker so slow that it launched after its replica had been stopped."""
    deployment = serving(company)
    (replica,) = replicas_of(deployment)
    launch = company.cluster.launched(replica.launch_name)
    services.deployment_stop(deployment=deployment, actor=company.engineer, at=company.at)
    for _ in range(3):
        company.turn_deployments()
    company.cluster.launch(launch)
    company.cluster.run(launch.name)

    assert sweeps.launches_sweep() == 1
    assert company.phase_of(launch.name) is Phase.EXITED
    assert sweeps.launches_sweep() == 1
    assert company.cluster.names() == frozenset()


def test_the_sweep_leaves_what_serves_alone(company: Company) -> None:
    deployment = serving(company, replicas=2)

    assert sweeps.launches_sweep() == 0

    assert {company.phase_of(one.launch_name) for one in replicas_of(deployment)} == {Phase.RUNNING}


def test_two_people_who_stop_at_once_stop_it_once(committed_company: Company) -> None:
    company = committed_company
    deployment = serving(company)

    def stop() -> None:
        services.deployment_stop(deployment=deployment, actor=company.engineer, at=company.at)

    assert raised(at_once(stop, stop, stop), IllegalTransition) == 2
    assert deployment.transitions.filter(event="stop").count() == 1


def test_two_workers_at_once_create_the_wanted_replicas(committed_company: Company) -> None:
    company = committed_company
    deployment = create(company, replicas=2)

    outcomes = at_once(company.turn_deployments, company.turn_deployments, company.turn_deployments)

    assert raised(outcomes, Exception) == 0
    company.turn_deployments()
    live = Replica.objects.exclude(state__in=(ReplicaState.STOPPED, ReplicaState.STOPPING))
    assert live.filter(backend__revision__deployment=deployment).count() == 2


def test_a_revision_that_is_replaced_before_it_served_gives_its_cards_back(
    company: Company,
) -> None:
    """With two cards, the third revision could otherwise never start."""
    deployment = serving(company)
    for _ in range(2):
        services.deployment_revise(
            deployment=deployment,
            configuration=configuration(company),
            actor=company.engineer,
            at=company.at,
        )
        turn(company)
    for _ in range(3):
        turn(company)
        serve_all(company)
    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.READY
    live = [one for one in replicas_of(deployment) if one.state != ReplicaState.STOPPED]
    assert [one.backend.revision.number for one in live] == [3]
