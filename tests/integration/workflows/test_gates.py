"""Gates: what is held or skipped behind one, and its override."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.models import AuditEntry
from apps.jobs.models import Job
from apps.jobs.services import SpecRefused
from apps.workflows import services
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.pipelines.lifecycle import (
    ACCEPTED,
    Gate,
    GateFailureAction,
    PipelineState,
)
from controlplane.domain.registry.versions import GateDecision
from tests.integration.company import Company
from tests.integration.workflows.pipeline_requests import (
    BADLY,
    D,
    F,
    Q,
    drive,
    gated,
    pipeline_steps,
    states,
    step,
    submit,
    turn,
)


def test_a_passed_gate_is_recorded_and_holds_nothing(company: Company) -> None:
    pipeline = drive(company, submit(company, gated(company), Q))
    assert states(pipeline) == ["succeeded", "succeeded"]
    passed = pipeline_steps(pipeline)[0]
    assert passed.gate_passed is True
    assert passed.gate_verdict == "exact_match is 0.9; the gate requires ≥ 0.8"
    with pytest.raises(IllegalTransition):
        services.gate_override(
            pipeline=pipeline, actor=company.engineer, reason="why not", at=company.at
        )


def test_a_missed_gate_holds_the_pipeline_with_metric_and_threshold(company: Company) -> None:
    pipeline = drive(company, submit(company, F, gated(company), Q, D), metrics=BADLY)
    assert pipeline.state == PipelineState.HELD
    message = "exact_match is 0.4, which is too low; the gate requires ≥ 0.8"
    assert pipeline.state_reason == f"step 2 did not pass its gate: {message}"
    assert states(pipeline) == ["succeeded", "held", "waiting", "waiting"]
    held = pipeline_steps(pipeline)[1]
    assert (held.gate_passed, held.gate_verdict) == (False, message)
    turn(company)
    assert Job.objects.count() == 2


def test_a_gate_override_records_its_reason(company: Company) -> None:
    pipeline = drive(company, submit(company, gated(company), D), metrics=BADLY)
    override: dict[str, Any] = {"pipeline": pipeline, "actor": company.engineer, "at": company.at}
    for reason in ("", "  ", "x" * 501):
        with pytest.raises(SpecRefused, match="1 to 500 characters"):
            services.gate_override(**override, reason=reason)

    services.gate_override(**override, reason="the test rows are mislabelled")
    with pytest.raises(IllegalTransition):
        services.gate_override(**override, reason="me too")

    drive(company, pipeline)
    assert states(pipeline) == ["succeeded", "succeeded"]
    overridden = pipeline_steps(pipeline)[0]
    assert (overridden.gate_passed, overridden.overridden_by) == (False, "mei")
    assert overridden.override_reason == "the test rows are mislabelled"
    entry = AuditEntry.objects.get(action="pipeline.approve_anyway")
    assert entry.detail["reason"] == "the test rows are mislabelled"
    assert (
        entry.detail["verdict"] == "exact_match is 0.4, which is too low; the gate requires ≥ 0.8"
    )


def test_a_gate_that_skipped_the_rest_can_be_overridden(company: Company) -> None:
    gate = gated(company, metric="perplexity", threshold=10, otherwise=GateFailureAction.SKIP)
    pipeline = drive(company, submit(company, gate, Q, D), metrics=BADLY)
    assert pipeline.state == PipelineState.SUCCEEDED
    message = "perplexity is 30, which is too high; the gate requires ≤ 10"
    assert pipeline.state_reason == f"ended at the gate of step 1: {message}"
    assert states(pipeline) == ["succeeded", "skipped", "skipped"]
    assert pipeline_steps(pipeline)[1].state_reason == f"skipped by the gate of step 1: {message}"

    services.gate_override(
        pipeline=pipeline, actor=company.engineer, reason="good enough", at=company.at
    )
    drive(company, pipeline)
    assert states(pipeline) == ["succeeded"] * 3
    assert (pipeline.state, pipeline.state_reason) == ("succeeded", "all steps have finished")


def test_a_rejected_quantized_version_misses_its_gate_until_it_is_accepted(
    company: Company,
) -> None:
    tolerance = {"metrics": ["perplexity"], "tolerance": {"perplexity_increase": 0.05}}
    quantize = step(company, Q, spec=tolerance, gate=Gate(metric=ACCEPTED))
    worse = {"perplexity_before": 3.0, "perplexity_after": 3.9}
    pipeline = drive(company, submit(company, quantize, D), metrics=worse)
    assert pipeline.state == PipelineState.HELD
    assert "the quantized version was rejected: perplexity" in pipeline.state_reason
    version = pipeline_steps(pipeline)[0].output_version
    assert version is not None
    assert version.acceptance == GateDecision.REJECTED

    services.gate_override(
        pipeline=pipeline, actor=company.engineer, reason="it is for a demo", at=company.at
    )
    drive(company, pipeline)
    version.refresh_from_db()
    assert version.acceptance == GateDecision.OVERRIDDEN
    assert pipeline.state == PipelineState.SUCCEEDED
    assert pipeline_steps(pipeline)[1].model_version == version
