"""Deployments from creation to deletion: snapshots, validation, and the number of replicas."""

from __future__ import annotations

import json

import pytest

from apps.accounts.models import AuditEntry
from apps.jobs.services import SpecRefused
from apps.quotas.models import Allocation
from apps.serving import selectors
from apps.serving.models import Deployment, Route
from apps.serving.selectors.revision_configurations import revision_configuration_check
from apps.serving.services import deployments as services
from apps.serving.services import gateways
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.serving.lifecycle import DeploymentState, ReplicaState
from tests.integration.company import Company
from tests.integration.serving.deployments import (
    configuration,
    create,
    endpoints,
    ready_deployment,
    replicas_of,
    start_replicas,
)


def test_ready_deployment_is_published_to_gateways(company: Company) -> None:
    deployment = create(company, replicas=2)
    assert deployment.state == DeploymentState.STARTING
    start_replicas(company)

    deployment.refresh_from_db()
    assert (deployment.state, deployment.state_reason) == ("ready", "2 of 2 replicas are ready")
    replicas = replicas_of(deployment)
    assert endpoints("parser") == [replica.uid for replica in replicas]
    assert all(replica.url.startswith("http://127.0.0.1:") for replica in replicas)
    credentials = {selectors.replica_engine_token(replica) for replica in replicas}
    assert len(credentials) == 2
    (visible,) = map(vars, selectors.deployments_visible(company.engineer))
    assert visible["ready_replicas"] == 2
    assert list(selectors.deployments_visible(company.stranger)) == []


def test_engine_requires_credential_in_snapshot(company: Company) -> None:
    deployment = ready_deployment(company)
    (replica,) = replicas_of(deployment)

    launch = company.cluster.launched(replica.launch_name)

    assert launch.secrets["NINEFOLD_ENGINE_KEY"] == selectors.replica_engine_token(replica)
    assert json.loads(launch.files["spec.json"])["model_name"] == "parser"


def test_taken_name_is_refused_with_message(company: Company) -> None:
    create(company)
    with pytest.raises(SpecRefused, match="'parser' is already in use"):
        create(company)
    assert Deployment.objects.count() == 1


def test_every_invalid_setting_of_configuration_is_reported(company: Company) -> None:
    company.model.state = "importing"
    bad = configuration(company, chips=("tpu-v9",), cards=0)

    findings = revision_configuration_check(bad, replicas=0)

    assert {one.field for one in findings} == {"model_version", "replicas", "cards", "chips"}


def test_scaling_up_adds_and_scaling_down_removes_the_youngest(company: Company) -> None:
    deployment = ready_deployment(company)
    services.deployment_scale(
        deployment=deployment, replicas=2, actor=company.engineer, at=company.at
    )
    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.UPDATING
    start_replicas(company)
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
    deployment = ready_deployment(company)
    with pytest.raises(SpecRefused, match=f"must be 1 to 64, got {replicas}"):
        services.deployment_scale(
            deployment=deployment, replicas=replicas, actor=company.engineer, at=company.at
        )


def test_a_deployment_stops_starts_again_and_is_deleted(company: Company) -> None:
    deployment = ready_deployment(company)
    services.deployment_stop(deployment=deployment, actor=company.engineer, at=company.at)
    for _ in range(3):
        company.turn_deployments()
    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.STOPPED
    assert company.cluster.names() == frozenset()
    assert not Allocation.objects.filter(released_at=None).exists()
    gateways.gateway_snapshot_publish(at=company.at)
    assert endpoints("parser") == []

    services.deployment_start(deployment=deployment, actor=company.engineer, at=company.at)
    start_replicas(company)
    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.READY

    assert not services.deployment_delete(
        deployment=deployment, actor=company.engineer, at=company.at
    )
    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.STOPPING
    # A second call changes nothing.
    services.deployment_delete(deployment=deployment, actor=company.engineer, at=company.at)
    for _ in range(3):
        company.turn_deployments()

    assert company.cluster.names() == frozenset()
    assert not Allocation.objects.filter(released_at=None).exists()
    assert not Route.objects.exists()
    assert list(selectors.deployments_visible(company.engineer)) == []
    actions = AuditEntry.objects.filter(action__startswith="deployment.").order_by("id")
    assert [entry.action.split(".")[1] for entry in actions] == [
        "create",
        "stop",
        "start",
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


def test_no_replica_is_added_to_a_deployment_that_is_being_stopped(company: Company) -> None:
    deployment = create(company)
    services.deployment_stop(deployment=deployment, actor=company.engineer, at=company.at)
    deployment.refresh_from_db()
    backend = selectors.newest_revision(deployment).backends.get()

    with pytest.raises(
        IllegalTransition, match="a deployment that is stopping cannot get replicas"
    ):
        services.replicas_create(backend=backend, deployment=deployment, count=1)
