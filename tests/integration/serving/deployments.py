"""Deployments of the test company on the fake cluster, reconciled by the tests."""

from __future__ import annotations

import json
from typing import Any

from apps.serving import selectors
from apps.serving.models import Deployment, GatewaySnapshot, Replica
from apps.serving.selectors.revision_configurations import RevisionConfiguration
from apps.serving.services import deployments as services
from apps.serving.services import gateways
from controlplane.domain.serving.lifecycle import DeploymentState
from controlplane.ports.clusters import ReplicaPhase
from tests.integration.company import ENGINE, Company


def configuration(company: Company, **changes: Any) -> RevisionConfiguration:
    return RevisionConfiguration(**{"model_version": company.model, "engine": ENGINE, **changes})


def create(company: Company, name: str = "parser", replicas: int = 1) -> Deployment:
    return services.deployment_create(
        actor=company.engineer,
        team=company.team,
        name=name,
        configuration=configuration(company),
        queue=company.queue,
        replicas=replicas,
    )


def reconcile(company: Company) -> None:
    company.turn_deployments()
    company.schedule()
    company.turn_deployments()


def start_replicas(company: Company) -> None:
    """Make every launched process ready, and reconcile."""
    reconcile(company)
    for name in company.cluster.names():
        if company.phase_of(name) is ReplicaPhase.PREPARING:
            company.cluster.run(name)
    company.turn_deployments()
    company.turn_deployments()


def ready_deployment(company: Company, replicas: int = 1) -> Deployment:
    deployment = create(company, replicas=replicas)
    start_replicas(company)
    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.READY
    return deployment


def replicas_of(deployment: Deployment) -> list[Replica]:
    return list(Replica.objects.filter(backend__revision__deployment=deployment).order_by("id"))


def gateway_has(
    company: Company, version: int, *, draining: Replica | None = None, name: str = "gateway"
) -> None:
    """A gateway has that snapshot, and perhaps open requests to a replica that it no longer names."""
    gateways.gateway_mark_seen(
        name=name,
        version=version,
        at=company.at,
        draining_requests={draining.uid: 2} if draining else {},
    )


def endpoints(name: str) -> list[str]:
    (route,) = [
        route
        for route in json.loads(gateways.gateway_snapshot_body(snapshot()))["routes"]
        if route["name"] == name
    ]
    return [endpoint["uid"] for backend in route["backends"] for endpoint in backend["endpoints"]]


def snapshot() -> GatewaySnapshot:
    latest = selectors.latest_gateway_snapshot()
    assert latest is not None
    return latest
