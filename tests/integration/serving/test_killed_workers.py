"""A worker killed between any two steps: the deployment still becomes ready and stops once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from apps.fleet import selectors as fleet
from apps.quotas.models import Allocation, Claim
from apps.serving.models import Deployment, Replica
from apps.serving.services import deployments as services
from controlplane.domain.serving.lifecycle import DeploymentState
from controlplane.ports.clusters import ReplicaPhase
from tests.integration.company import Company
from tests.integration.mortality import EVERY, Mortal, Worker, live
from tests.integration.serving.deployments import create, reconcile

pytestmark = pytest.mark.slow

MAX_STEPS = 2_000


@pytest.fixture
def worker(committed_company: Company, monkeypatch: pytest.MonkeyPatch) -> Worker:
    worker = Worker()
    cluster = Mortal(committed_company.cluster, worker)
    monkeypatch.setattr(fleet, "cluster_adapter", lambda row: cluster)
    return worker


def reach(company: Company, worker: Worker, deployment: Deployment, state: DeploymentState) -> None:
    """Reconcile until the deployment has the state; launched engines become ready."""

    def there() -> bool:
        for name in company.cluster.names():
            if company.phase_of(name) is ReplicaPhase.PREPARING:
                company.cluster.run(name)
        deployment.refresh_from_db()
        return deployment.state == state

    live(worker, turn=partial(reconcile, company), until=there)


def deaths_of(worker: Worker, life: Callable[[int], None]) -> int:
    """Repeat the scenario, killing the worker some steps later each time; return the number of kills."""
    for deaths, dies_at in enumerate(range(0, MAX_STEPS, EVERY)):
        worker.steps, worker.dies_at, worker.last_step = 0, dies_at, ""
        life(dies_at)
        if not worker.last_step:
            return deaths
    raise AssertionError(f"the life is larger than {MAX_STEPS} steps")


def test_deployment_starts_and_stops_once_if_worker_is_killed_at_any_step(
    committed_company: Company, worker: Worker
) -> None:
    company = committed_company

    def life(number: int) -> None:
        deployment = create(company, f"parser-{number}")
        reach(company, worker, deployment, DeploymentState.READY)
        services.deployment_stop(deployment=deployment, actor=company.engineer, at=company.at)
        reach(company, worker, deployment, DeploymentState.STOPPED)

        died = worker.last_step
        (replica,) = Replica.objects.filter(backend__revision__deployment=deployment)
        assert (replica.generation, replica.crashes) == (1, 0), died
        path = list(replica.transitions.values_list("event", flat=True))
        assert path == ["admit", "launch", "become_ready", "drain", "stop", "confirm"], died
        claim = Claim.objects.get(owner_uid=replica.uid)
        assert (claim.state, claim.release_reason) == ("released", "finished"), died
        assert company.cluster.names() == frozenset(), died

    deaths = deaths_of(worker, life)

    assert deaths * EVERY > 80
    assert not Allocation.objects.filter(released_at=None).exists()
