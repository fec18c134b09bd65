"""Deployments of the test company on the fake cluster, turned by hand."""

from __future__ import annotations

import json
from typing import Any

from apps.serving import selectors
from apps.serving.models import Deployment, GatewaySnapshot, Replica
from apps.serving.services import deployments as services
from apps.serving.services import snapshots
from apps.serving.services.configurations import Configuration
from controlplane.domain.serving import DeploymentState
from controlplane.ports.clusters import Phase
from tests.integration.company import ENGINE, Company


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
