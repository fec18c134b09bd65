"""Concurrent requests and workers: each change happens once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from apps.serving import selectors
from apps.serving.models import Deployment, Replica
from apps.serving.services import deployments as services
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.serving.lifecycle import ReplicaState
from controlplane.persistence.leases import lease_rows
from controlplane.persistence.state_transitions import LeaseLost
from tests.integration.company import Company
from tests.integration.serving.deployments import (
    create,
    ready_deployment,
    replicas_of,
)
from tests.integration.threads import at_once, raised


def test_worker_without_lease_creates_no_replicas(company: Company) -> None:
    deployment = create(company)
    (slow,) = lease_rows(Deployment.objects.all(), limit=1, ttl=timedelta(minutes=1))
    Deployment.objects.update(lease_token=slow.lease_token + 1)
    backend = selectors.newest_revision(deployment).backends.get()

    with pytest.raises(LeaseLost):
        services.replicas_create(backend=backend, deployment=slow, count=1)

    assert replicas_of(deployment) == []


def test_concurrent_stops_stop_the_deployment_once(committed_company: Company) -> None:
    company = committed_company
    deployment = ready_deployment(company)

    def stop() -> None:
        services.deployment_stop(deployment=deployment, actor=company.engineer, at=company.at)

    assert raised(at_once(stop, stop, stop), IllegalTransition) == 2
    assert deployment.transitions.filter(event="stop").count() == 1


def test_concurrent_workers_create_the_desired_replicas(committed_company: Company) -> None:
    company = committed_company
    deployment = create(company, replicas=2)

    outcomes = at_once(company.turn_deployments, company.turn_deployments, company.turn_deployments)

    assert raised(outcomes, Exception) == 0
    company.turn_deployments()
    live = Replica.objects.exclude(state__in=(ReplicaState.STOPPED, ReplicaState.STOPPING))
    assert live.filter(backend__revision__deployment=deployment).count() == 2
