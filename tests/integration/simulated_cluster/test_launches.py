"""Work of the product on a simulated cluster: the real services, cycle and loops, and a clock that is held."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pytest_django import Settings

from apps.fleet.models import Card
from apps.fleet.reconcilers import inventories_sync
from apps.jobs.models import Attempt, Job
from apps.jobs.reconcilers.attempts import attempts_reconcile
from apps.jobs.services import JobRequest, job_submit
from apps.models.models import ModelVersion
from apps.quotas.models import Allocation
from apps.quotas.reconcilers import cycle_run
from config import simulated_clusters
from config.demo.simulated_day import InProcessAttemptReporter, time_frozen_at
from controlplane.adapters.clusters.simulated import SimulatedCluster
from controlplane.domain.jobs.lifecycle import JobKind
from controlplane.domain.scheduling.plans import SchedulingPolicy
from tests import factories
from tests.integration.simulated_cluster.conftest import FLEET, Clock

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(tmp_path: Path, settings: Settings) -> SimulatedCluster:
    settings.NINEFOLD_HOME = tmp_path
    simulated_clusters.ensure_simulated_cluster("paper", fleet=FLEET, failing=0.0)
    simulated = simulated_clusters.cluster_named("paper")
    simulated.hold(Clock().at)
    inventories_sync(at=Clock().at)
    return simulated


@pytest.fixture
def turn(cluster: SimulatedCluster) -> Callable[..., datetime]:
    """Moves time on and turns every loop once; says what time it is."""

    def go_on(**distance: float) -> datetime:
        at = cluster.now() + timedelta(**distance)
        cluster.hold(at)
        with time_frozen_at(at):
            cycle_run(policy=SchedulingPolicy(), at=at)
            attempts_reconcile(at=at)
            simulated_clusters.report_simulated_processes(
                listener=InProcessAttemptReporter(), interval=timedelta(), limit=100
            )
            attempts_reconcile(at=at)
        return at

    return go_on


def submitted(*, chip: str = "nvidia-h800", cards: int = 16) -> Job:
    team = factories.team()
    actor = factories.user(team=team)
    return job_submit(
        actor=actor,
        team=team,
        request=JobRequest(
            kind=JobKind.FINETUNE,
            name="across two nodes",
            spec={"method": "lora"},
            queue=factories.queue(),
            engine="ms_swift",
            model_version=factories.model_version(actor=actor, team=team),
            dataset_version=factories.dataset_version(actor=actor, team=team),
            output_name="made-up",
            chips=(chip,),
            cards=cards,
        ),
    )


def held() -> int:
    return Allocation.objects.filter(released_at=None).count()


def test_a_training_runs_reports_and_makes_a_version(turn: Callable[..., datetime]) -> None:
    job = submitted()
    turn()
    assert held() == 16
    turn(minutes=5)
    job.refresh_from_db()
    assert job.state == "running"
    turn(hours=80)
    turn(minutes=1)
    job.refresh_from_db()
    assert job.state == "succeeded", job.state_reason
    assert held() == 0
    attempt = Attempt.objects.get()
    assert attempt.progress["step"] == attempt.progress["total_steps"]
    assert attempt.points.count() > 50
    version = ModelVersion.objects.get(attempt_uid=attempt.uid)
    assert version.parameters == 7_615_616_512


def test_a_card_that_dies_fails_the_job_and_takes_no_more_work(
    cluster: SimulatedCluster, turn: Callable[..., datetime]
) -> None:
    job = submitted(cards=8)
    turn()
    turn(minutes=5)
    (node,) = {one.node.name for one in Allocation.objects.select_related("node")}
    cluster.faults.kill_card(node, 2, message="ECC")
    at = turn(minutes=1)
    inventories_sync(at=at)
    job.refresh_from_db()
    assert (job.state, job.state_reason) == ("failed", f"card 2 of {node} failed: ECC")
    assert held() == 0
    assert list(Card.objects.filter(state="unknown").values_list("index", flat=True)) == [2]


@pytest.mark.usefixtures("cluster")
def test_a_cluster_says_that_it_is_simulated() -> None:
    row, _ = simulated_clusters.all_clusters()[0]
    row.refresh_from_db()
    assert row.isolation.startswith("not isolated: a simulated cluster")
