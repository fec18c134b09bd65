"""Quantized versions: registered with their verdict, deployed only if accepted, decided by people."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.models import AuditEntry
from apps.jobs.models import Job
from apps.jobs.services import SpecRefused
from apps.models.models import ModelVersion
from apps.models.selectors.model_versions import quantization_report
from apps.models.services.model_versions import (
    GateOverrideRefused,
    model_version_accept,
    model_version_reject,
)
from apps.serving.selectors.revision_configurations import (
    RevisionConfiguration,
    revision_configuration_check,
)
from apps.serving.services.deployments import deployment_create
from controlplane.domain.jobs.lifecycle import JobKind, JobState
from controlplane.domain.registry.versions import GateDecision
from tests.integration.company import ENGINE, Company, model_contents, quantized_contents

pytestmark = pytest.mark.django_db

ANSWERS = (
    b'{"row": 1, "prompt": "where is 0?", "reference": "at 0", "before": "at 0", "after": "at 0",'
    b' "right_before": true, "right_after": true}\n'
    b'{"row": 2, "prompt": "where is 4?", "reference": "at 4", "before": "at 4", "after": "at 5",'
    b' "right_before": true, "right_after": false}\n'
    b'{"row": 3, "prom'
)
UNCHANGED: dict[str, Any] = {
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
    company.finish(attempt, contents, UNCHANGED | metrics)
    company.turn_jobs()
    company.turn_jobs()
    job.refresh_from_db()
    return job, ModelVersion.objects.filter(job_uid=job.uid).first()


def _quantized_version(company: Company, **metrics: Any) -> ModelVersion:
    _, version = _quantized(company, **metrics)
    assert version is not None
    return version


def _refusals(version: ModelVersion) -> list[str]:
    configuration = RevisionConfiguration(model_version=version, engine=ENGINE)
    return [finding.message for finding in revision_configuration_check(configuration, replicas=1)]


def test_a_version_within_tolerance_is_accepted_and_has_its_lineage(
    company: Company,
) -> None:
    job, version = _quantized(company)
    assert job.state == JobState.SUCCEEDED
    assert version is not None
    assert (version.scheme, version.format) == ("w4a16", "compressed-tensors")
    assert version.acceptance == GateDecision.ACCEPTED
    assert version.acceptance_reason.startswith("perplexity changed from 2 to 2.02, +1.00%")
    assert (version.base, version.dataset_version) == (company.model, company.dataset)
    # Packed weights are as many as they were before.
    assert version.parameters == company.model.parameters
    assert _refusals(version) == []


def test_a_version_beyond_tolerance_is_stored_and_not_deployable(company: Company) -> None:
    job, version = _quantized(company, exact_match_after=0.5)
    assert job.state == JobState.SUCCEEDED
    assert "which is not accepted: exact match changed from 1 to 0.5" in job.state_reason
    assert version is not None
    assert version.acceptance == GateDecision.REJECTED
    (message,) = _refusals(version)
    assert message == (
        f"{version} is not accepted (exact match changed from 1 to 0.5, -50.00 "
        "points; the tolerance is a decrease of 1.00 points); accept it, or choose another "
        "version"
    )
    with pytest.raises(SpecRefused):
        deployment_create(
            actor=company.engineer,
            team=company.team,
            name="small",
            configuration=RevisionConfiguration(model_version=version, engine=ENGINE),
            queue=company.queue,
        )


def test_the_tolerance_of_the_job_spec_decides(company: Company) -> None:
    version = _quantized_version(company, perplexity_after=2.5, tolerance=10)
    assert version.acceptance == GateDecision.REJECTED


def test_weights_that_are_not_quantized_are_refused(company: Company) -> None:
    job, attempt = company.running(
        name="quantize", kind=JobKind.QUANTIZE, output_name="parser-small", spec=SPEC
    )
    company.finish(attempt, model_contents(), UNCHANGED)
    company.turn_jobs()
    company.turn_jobs()
    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert "is not quantized: its config.json has no quantization_config" in job.state_reason


def test_accepting_a_rejected_version_records_the_reason(company: Company) -> None:
    version = _quantized_version(company, exact_match_after=0.5)
    decided = model_version_accept(
        version=version, actor=company.engineer, reason=" good enough\nfor drafts "
    )
    assert decided.acceptance == GateDecision.OVERRIDDEN
    assert decided.acceptance_reason == "mei: good enough for drafts"
    assert _refusals(decided) == []
    entry = AuditEntry.objects.get(action="model.accept")
    assert entry.detail["reason"] == "good enough for drafts"
    assert entry.detail["before"] == "rejected"

    with pytest.raises(GateOverrideRefused, match="is already overridden"):
        model_version_accept(version=version, actor=company.engineer, reason="once more")


def test_an_accepted_version_can_be_rejected(company: Company) -> None:
    version = _quantized_version(company)
    decided = model_version_reject(version=version, actor=company.engineer, reason="it swears")
    assert decided.acceptance == GateDecision.REJECTED
    assert "(mei: it swears)" in _refusals(decided)[0]


def test_a_gate_override_needs_a_reason_and_a_quantized_version(company: Company) -> None:
    version = _quantized_version(company, exact_match_after=0.5)
    with pytest.raises(GateOverrideRefused, match="enter a reason"):
        model_version_accept(version=version, actor=company.engineer, reason=" \n ")
    version.refresh_from_db()
    assert version.acceptance == GateDecision.REJECTED
    with pytest.raises(GateOverrideRefused, match="is not quantized"):
        model_version_reject(version=company.model, actor=company.engineer, reason="no")


def test_changed_answers_come_first_and_a_truncated_line_is_ignored(company: Company) -> None:
    found = quantization_report(_quantized_version(company), tolerance=SPEC["tolerance"])  # type: ignore[arg-type]
    assert (found.answers.total, found.answers.changed) == (2, 1)
    assert [answer.row for answer in found.answers.shown] == [2, 1]
    assert found.size.share == pytest.approx(0.3)
    assert [each.metric for each in found.comparisons] == ["exact_match", "perplexity"]
