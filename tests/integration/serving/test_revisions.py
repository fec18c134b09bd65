"""Traffic shifts to a new revision, or stays on the old one."""

from __future__ import annotations

from apps.serving.services import deployments as services
from apps.serving.services import gateways
from controlplane.domain.serving.lifecycle import DeploymentState, ReplicaState
from tests.integration.company import Company, ready_model
from tests.integration.serving.deployments import (
    configuration,
    endpoints,
    ready_deployment,
    reconcile,
    replicas_of,
    start_replicas,
)


def test_a_new_revision_gets_requests_only_once_it_is_ready(company: Company) -> None:
    deployment = ready_deployment(company)
    (old,) = replicas_of(deployment)
    better = ready_model(team=company.team, name="tiny")

    revision = services.deployment_revise(
        deployment=deployment,
        configuration=configuration(company, model_version=better),
        actor=company.engineer,
        at=company.at,
    )
    reconcile(company)
    gateways.gateway_snapshot_publish(at=company.at)
    assert endpoints("parser") == [old.uid]
    new = replicas_of(deployment)[-1]
    company.cluster.run(new.launch_name)
    company.turn_deployments()
    gateways.gateway_snapshot_publish(at=company.at)
    assert endpoints("parser") == [old.uid, new.uid]

    company.turn_deployments()
    gateways.gateway_snapshot_publish(at=company.at)
    assert endpoints("parser") == [new.uid]
    company.turn_deployments()

    old.refresh_from_db()
    assert (old.state, new.backend.revision) == (ReplicaState.STOPPED, revision)
    assert company.cluster.names() == {new.launch_name}


def test_crashing_revision_leaves_traffic_on_previous_revision(company: Company) -> None:
    deployment = ready_deployment(company)
    (old,) = replicas_of(deployment)
    services.deployment_revise(
        deployment=deployment,
        configuration=configuration(company),
        actor=company.engineer,
        at=company.at,
    )
    reconcile(company)
    company.cluster.finish(replicas_of(deployment)[-1].launch_name, exit_code=1)

    for _ in range(3):
        company.turn_deployments()
    gateways.gateway_snapshot_publish(at=company.at)

    assert endpoints("parser") == [old.uid]
    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.DEGRADED


def test_superseded_revision_releases_its_cards(
    company: Company,
) -> None:
    """With two cards, the third revision could otherwise never start."""
    deployment = ready_deployment(company)
    for _ in range(2):
        services.deployment_revise(
            deployment=deployment,
            configuration=configuration(company),
            actor=company.engineer,
            at=company.at,
        )
        reconcile(company)
    for _ in range(3):
        reconcile(company)
        start_replicas(company)
    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.READY
    live = [one for one in replicas_of(deployment) if one.state != ReplicaState.STOPPED]
    assert [one.backend.revision.number for one in live] == [3]
