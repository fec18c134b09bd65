"""Quantized versions: registered with their verdict, deployed only if accepted, decided by people."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.models import AuditEntry
from apps.jobs.models import Job
from apps.jobs.services import SpecRefused
from apps.models.models import ModelVersion
from apps.models.selectors.quantizations import quantization_of
from apps.models.services.acceptances import AcceptanceRefused, version_accept, version_reject
from apps.serving.selectors.configurations import RevisionConfiguration, configuration_check
from apps.serving.services.deployments import deployment_create
from controlplane.domain.jobs.lifecycle import JobKind, JobState
from controlplane.domain.models import Acceptance
from tests.integration.company import ENGINE, Company, model_contents, quantized_contents

pytestmark = pytest.mark.django_db

ANSWERS = (
    b'{"row": 1, "prompt": "where is 0?", "reference": "at 0", "before": "at 0", "after": "at 0",'
    b' "right_before": true, "right_after": true}\n'
    b'{"row": 2, "prompt": "where is 4?", "reference": "at 4", "before": "at 4", "after": "at 5",'
    b' "right_before": true, "right_after": false}\n'
    b'{"row": 3, "prom'
)
KEPT: dict[str, Any] = {
    "size_before": 1000,
    "size_after": 300,
    "perplexity_before": 2.0,
    "perplexity_after": 2.02,
    "exact_match_before": 1.0,
    "exact_match_after": 1.0,
}
SPEC = {
    "metrics": ["perplexity", "exact_match"],
    "tolerance": {"perplexity_increase": 0.05, "accuracy_drop": 0.01},
}


def _quantized(company: Company, **metrics: Any) -> tuple[Job, ModelVersion | None]:
    """A quantization that has ended, and what it made."""
    job, attempt = company.running(
        name="quantize", kind=JobKind.QUANTIZE, output_name="parser-small", spec=SPEC
    )
    contents = quantized_contents() | {"quantization/answers.jsonl": ANSWERS}
    company.finish(attempt, contents, KEPT | metrics)
    company.turn_jobs()
    company.turn_jobs()
    job.refresh_from_db()
    return job, ModelVersion.objects.filter(job_uid=job.uid).first()


def _made(company: Company, **metrics: Any) -> ModelVersion:
    _, version = _quantized(company, **metrics)
    assert version is not None
    return version


def _refusals(version: ModelVersion) -> list[str]:
    configuration = RevisionConfiguration(model_version=version, engine=ENGINE)
    return [finding.message for finding in configuration_check(configuration, replicas=1)]


def test_a_version_that_kept_what_it_knew_is_accepted_and_knows_its_origin(
    company: Company,
) -> None:
    job, version = _quantized(company)
    assert job.state == JobState.SUCCEEDED
    assert version is not None
    assert (version.scheme, version.format) == ("w4a16", "compressed-tensors")
    assert version.acceptance == Acceptance.ACCEPTED
    assert version.acceptance_reason.startswith("perplexity went from 2 to 2.02, +1.00%")
    assert (version.base, version.dataset_version) == (company.model, company.dataset)
    # Packed weights are as many as they were before.
    assert version.parameters == company.model.parameters
    assert _refusals(version) == []


def test_a_version_that_lost_too_much_is_kept_and_not_deployed(company: Company) -> None:
    job, version = _quantized(company, exact_match_after=0.5)
    assert job.state == JobState.SUCCEEDED
    assert "which is not accepted: exact match went from 1 to 0.5" in job.state_reason
    assert version is not None
    assert version.acceptance == Acceptance.REJECTED
    (message,) = _refusals(version)
    assert message == (
        f"{version} is not accepted (exact match went from 1 to 0.5, -50.00 points; a fall of 1.00 is "
        "tolerated); accept it, or choose another"
    )
    with pytest.raises(SpecRefused):
        deployment_create(
            actor=company.engineer,
            team=company.team,
            name="small",
            configuration=RevisionConfiguration(model_version=version, engine=ENGINE),
            queue=company.queue,
        )


def test_the_jobs_own_tolerance_counts_whatever_the_run_says(company: Company) -> None:
    version = _made(company, perplexity_after=2.5, tolerance=10)
    assert version.acceptance == Acceptance.REJECTED


def test_plain_weights_are_not_taken_for_quantized_ones(company: Company) -> None:
    job, attempt = company.running(
        name="quantize", kind=JobKind.QUANTIZE, output_name="parser-small", spec=SPEC
    )
    company.finish(attempt, model_contents(), KEPT)
    company.turn_jobs()
    company.turn_jobs()
    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert "is not quantized: its config.json has no quantization_config" in job.state_reason


def test_a_person_accepts_with_a_reason_that_stays(company: Company) -> None:
    version = _made(company, exact_match_after=0.5)
    decided = version_accept(
        version=version, actor=company.engineer, reason=" good enough\nfor drafts "
    )
    assert decided.acceptance == Acceptance.OVERRIDDEN
    assert decided.acceptance_reason == "mei: good enough for drafts"
    assert _refusals(decided) == []
    entry = AuditEntry.objects.get(action="model.accept")
    assert entry.detail["reason"] == "good enough for drafts"
    assert entry.detail["before"] == "rejected"

    with pytest.raises(AcceptanceRefused, match="is overridden already"):
        version_accept(version=version, actor=company.engineer, reason="once more")


def test_a_person_rejects_what_the_figures_accepted(company: Company) -> None:
    version = _made(company)
    decided = version_reject(version=version, actor=company.engineer, reason="it swears")
    assert decided.acceptance == Acceptance.REJECTED
    assert "(mei: it swears)" in _refusals(decided)[0]


def test_nothing_is_decided_without_a_reason_or_of_plain_weights(company: Company) -> None:
    version = _made(company, exact_match_after=0.5)
    with pytest.raises(AcceptanceRefused, match="say why"):
        version_accept(version=version, actor=company.engineer, reason=" \n ")
    version.refresh_from_db()
    assert version.acceptance == Acceptance.REJECTED
    with pytest.raises(AcceptanceRefused, match="is not quantized"):
        version_reject(version=company.model, actor=company.engineer, reason="no")


def test_answers_that_changed_come_first_and_a_cut_line_is_left_out(company: Company) -> None:
    found = quantization_of(_made(company), tolerance=SPEC["tolerance"])  # type: ignore[arg-type]
    assert (found.answers.total, found.answers.changed) == (2, 1)
    assert [answer.row for answer in found.answers.shown] == [2, 1]
    assert found.size.share == pytest.approx(0.3)
    assert [each.metric for each in found.judged] == ["exact_match", "perplexity"]
