"""A worker killed between any two steps of a pipeline's turns: it still ends right, and does nothing twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from apps.accounts.models import AuditEntry
from apps.fleet import selectors as fleet
from apps.jobs.models import Job
from apps.models import selectors as registry_selectors
from apps.serving.models import Deployment, Revision
from apps.serving.services import deployments
from apps.workflows import services
from apps.workflows.models import Pipeline
from controlplane.domain.pipelines.lifecycle import PipelineState
from controlplane.domain.serving.lifecycle import DeploymentState
from controlplane.outbox.models import OutboxMessage
from tests.integration.company import Company
from tests.integration.mortality import EVERY, Mortal, Worker, live
from tests.integration.workflows.pipeline_requests import (
    D,
    E,
    gated,
    pipeline_steps,
    processes_act,
    states,
    step,
    submit,
    turn,
)

pytestmark = pytest.mark.slow

#: A life has fewer steps; more would mean that it does not end.
MAX_STEPS = 1_000


@pytest.fixture
def worker(committed_company: Company, monkeypatch: pytest.MonkeyPatch) -> Worker:
    worker = Worker()
    cluster = Mortal(committed_company.cluster, worker)
    store = Mortal(registry_selectors.artifact_store(), worker)
    monkeypatch.setattr(fleet, "cluster_adapter", lambda row: cluster)
    monkeypatch.setattr(registry_selectors, "artifact_store", lambda: store)
    return worker


def deaths_of(
    company: Company,
    worker: Worker,
    *,
    begin: Callable[[int], Pipeline],
    check: Callable[[Pipeline, str], None],
    end: Callable[[Pipeline], None] = lambda pipeline: None,
) -> int:
    """Live the same life again and again, dying some steps later each time; say how many there were.

    Only the loop of pipelines is mortal; the others have tests of their own.
    """
    for deaths, dies_at in enumerate(range(0, MAX_STEPS, EVERY)):
        pipeline = begin(dies_at)
        worker.steps, worker.dies_at, worker.last_step = 0, dies_at, ""

        def over(pipeline: Pipeline = pipeline) -> bool:
            pipeline.refresh_from_db()
            if pipeline.state != PipelineState.RUNNING:
                return True
            company.turn_deployments()
            company.schedule()
            company.turn_jobs()
            company.turn_deployments()
            processes_act(company)
            return False

        live(worker, turn=company.turn_pipelines, until=over)
        worker.dies_at = None
        check(pipeline, worker.last_step)
        end(pipeline)
        for name in company.cluster.names():
            company.cluster.remove(name)
        if not worker.last_step:
            return deaths
    raise AssertionError(f"the life is larger than {MAX_STEPS} steps")


def assert_published_once(pipeline: Pipeline, died: str) -> None:
    messages = OutboxMessage.objects.filter(
        topic="pipeline.ended", payload__pipeline_uid=pipeline.uid
    )
    assert messages.count() == 1, died


def test_each_step_is_submitted_once_wherever_the_worker_is_killed(
    committed_company: Company, worker: Worker
) -> None:
    company = committed_company

    def begin(_life: int) -> Pipeline:
        return submit(company, gated(company), E)

    def check(pipeline: Pipeline, died: str) -> None:
        assert states(pipeline) == ["succeeded", "succeeded"], died
        jobs = Job.objects.filter(name__startswith="addresses")
        assert jobs.count() == 2, died
        for one in pipeline_steps(pipeline):
            events = list(one.transitions.values_list("event", flat=True))
            assert events == ["begin", "succeed"], died
            assert one.job is not None
            submitted = AuditEntry.objects.filter(action="job.submit", object_uid=one.job.uid)
            assert submitted.count() == 1, died
        moves = list(pipeline.transitions.values_list("event", flat=True))
        assert moves == ["succeed"], died
        assert_published_once(pipeline, died)

    def end(_pipeline: Pipeline) -> None:
        Job.objects.update(name="of an earlier life")

    deaths = deaths_of(company, worker, begin=begin, check=check, end=end)

    assert deaths * EVERY > 60


def test_a_deployment_is_created_once_wherever_the_worker_is_killed(
    committed_company: Company, worker: Worker
) -> None:
    company = committed_company

    def begin(life: int) -> Pipeline:
        return submit(company, step(company, D, deployment_name=f"parser-{life}"))

    def check(pipeline: Pipeline, died: str) -> None:
        assert states(pipeline) == ["succeeded"], died
        (done,) = pipeline_steps(pipeline)
        created = Deployment.objects.get(name=done.deployment_name)
        assert done.deployment == created, died
        assert Revision.objects.filter(deployment=created).count() == 1, died
        assert_published_once(pipeline, died)

    def end(pipeline: Pipeline) -> None:
        (done,) = pipeline_steps(pipeline)
        assert done.deployment is not None
        deployments.deployment_stop(
            deployment=done.deployment, actor=company.engineer, at=company.at
        )
        for _ in range(6):
            company.turn_deployments()
        done.deployment.refresh_from_db()
        assert done.deployment.state == DeploymentState.STOPPED

    deaths = deaths_of(company, worker, begin=begin, check=check, end=end)

    assert deaths * EVERY > 30


def test_a_cancelled_pipeline_ends_its_job_once_wherever_the_worker_is_killed(
    committed_company: Company, worker: Worker
) -> None:
    company = committed_company

    def begin(_life: int) -> Pipeline:
        pipeline = submit(company, E, E)
        turn(company)
        services.pipeline_cancel(pipeline=pipeline, actor=company.engineer, at=company.at)
        return pipeline

    def check(pipeline: Pipeline, died: str) -> None:
        assert pipeline.state == PipelineState.CANCELLED, died
        assert states(pipeline)[1] == "waiting", died
        job = pipeline_steps(pipeline)[0].job
        assert job is not None
        asked = AuditEntry.objects.filter(action="job.cancel", object_uid=job.uid)
        # A program that ended before anybody could stop it was not asked to.
        assert asked.count() == (1 if job.state == "cancelled" else 0), died
        assert_published_once(pipeline, died)

    deaths = deaths_of(company, worker, begin=begin, check=check)

    assert deaths * EVERY > 20
