"""Two people, or two workers, at the same moment: exactly one wins."""

from __future__ import annotations

from datetime import timedelta

import pytest

from apps.accounts.models import AuditEntry
from apps.jobs.models import Job
from apps.serving.models import Deployment, Revision
from apps.serving.selectors.revision_configurations import RevisionConfiguration
from apps.serving.services import deployments
from apps.workflows import services
from apps.workflows.models import Pipeline
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.pipelines.lifecycle import PipelineState
from controlplane.persistence.leases import lease_rows
from controlplane.persistence.state_transitions import LeaseLost
from tests.integration.company import ENGINE, Company
from tests.integration.threads import at_once, raised
from tests.integration.workflows.pipeline_requests import (
    D,
    E,
    F,
    drive,
    gated,
    pipeline_steps,
    submit,
)

pytestmark = pytest.mark.slow

POOR = {"exact_match": 0.1, "perplexity": 9.0}


def test_two_workers_at_once_submit_one_job(committed_company: Company) -> None:
    company = committed_company
    pipelines = [submit(company, E) for _ in range(5)]

    at_once(company.turn_pipelines, company.turn_pipelines, company.turn_pipelines)

    assert Job.objects.count() == len(pipelines)
    for pipeline in pipelines:
        (step,) = pipeline_steps(pipeline)
        assert step.job is not None
        assert step.transitions.filter(event="begin").count() == 1


def test_two_concurrent_cancellations_make_one_request(committed_company: Company) -> None:
    company = committed_company
    pipeline = submit(company, E)

    def cancel() -> bool:
        return services.pipeline_cancel(pipeline=pipeline, actor=company.engineer, at=company.at)

    assert sorted(at_once(cancel, cancel, cancel), key=str) == [False, False, True]
    assert AuditEntry.objects.filter(action="pipeline.cancel").count() == 1


def test_concurrent_override_and_cancellation_leave_the_pipeline_consistent(
    committed_company: Company,
) -> None:
    company = committed_company
    for _ in range(4):
        pipeline = drive(company, submit(company, gated(company), E), metrics=POOR)

        def override(pipeline: Pipeline = pipeline) -> object:
            return services.gate_override(
                pipeline=pipeline, actor=company.engineer, reason="go on", at=company.at
            )

        def cancel(pipeline: Pipeline = pipeline) -> object:
            return services.pipeline_cancel(
                pipeline=pipeline, actor=company.engineer, at=company.at
            )

        outcomes = at_once(override, cancel)
        assert raised(outcomes, IllegalTransition) <= 1
        drive(company, pipeline)
        assert pipeline.state == PipelineState.CANCELLED
        moves = list(pipeline.transitions.values_list("event", flat=True))
        assert moves in (["hold", "cancel"], ["hold", "go_on", "cancel"])


def test_concurrent_cancellation_and_revision_keep_the_users_revision(
    committed_company: Company,
) -> None:
    company = committed_company
    drive(company, submit(company, D))
    served = Deployment.objects.get()
    for _ in range(4):
        pipeline = submit(company, E, D)

        def deploys(pipeline: Pipeline = pipeline) -> bool:
            return pipeline_steps(pipeline)[1].state == "running"

        drive(company, pipeline, until=deploys)
        services.pipeline_cancel(pipeline=pipeline, actor=company.engineer, at=company.at)

        def revise() -> Revision:
            return deployments.deployment_revise(
                deployment=served,
                configuration=RevisionConfiguration(
                    model_version=company.model, engine=ENGINE, cards=2
                ),
                actor=company.engineer,
                at=company.at,
            )

        _, chosen = at_once(company.turn_pipelines, revise)
        company.turn_pipelines()

        pipeline.refresh_from_db()
        assert pipeline.state == PipelineState.CANCELLED
        assert served.revisions.order_by("-number")[0] == chosen


def test_a_worker_that_lost_its_lease_submits_nothing(committed_company: Company) -> None:
    """It read the pipeline, slept through its lease, and goes on where it was."""
    company = committed_company
    pipeline = submit(company, F, E)
    (slow,) = lease_rows(
        Pipeline.objects.filter(pk=pipeline.pk).select_related(
            "team", "created_by", "runs_as", "queue", "model_version__line", "cancel_requested_by"
        ),
        limit=1,
        ttl=timedelta(),
    )
    services.pipeline_cancel(pipeline=pipeline, actor=company.engineer, at=company.at)
    company.turn_pipelines()
    pipeline.refresh_from_db()
    assert pipeline.state == PipelineState.CANCELLED

    with pytest.raises(LeaseLost):
        services.step_begin(pipeline_steps(slow)[0], pipeline=slow, at=company.at)

    assert not Job.objects.exists()
    assert [one.state for one in pipeline_steps(pipeline)] == ["waiting", "waiting"]
