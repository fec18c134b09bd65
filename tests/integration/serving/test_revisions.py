"""A new revision takes over from the old one, or leaves it serving."""

from __future__ import annotations

from apps.serving.services import deployments as services
from apps.serving.services import snapshots
from controlplane.domain.serving import DeploymentState, ReplicaState
from tests.integration.company import Company, ready_model
from tests.integration.serving.served import (
    configuration,
    endpoints,
    replicas_of,
    serve_all,
    serving,
    turn,
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
