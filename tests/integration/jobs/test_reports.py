"""What an attempt tells of itself, and by what it is known."""

from __future__ import annotations

import pytest

from apps.jobs import selectors, services
from tests.integration.company import Company
from tests.integration.jobs.records import claim_of


def test_the_token_of_an_attempt_is_valid_for_it_while_it_runs(
    company: Company,
) -> None:
    _, attempt = company.running()
    token = selectors.attempt_token(attempt)

    assert selectors.attempt_by_token(uid=attempt.uid, token=token) == attempt
    assert selectors.attempt_by_token(uid=attempt.uid, token="guess") is None
    other = company.submit("another")
    uid = selectors.latest_attempt(other).uid
    assert selectors.attempt_by_token(uid=uid, token=token) is None
    company.finish(attempt)
    company.turn_jobs()
    assert selectors.attempt_by_token(uid=attempt.uid, token=token) is None


def test_steps_reported_twice_count_once_and_reach_the_claim(company: Company) -> None:
    job, attempt = company.running()
    first = [{"step": 1, "loss": 5.0, "total_steps": 4}, {"step": 1, "learning_rate": 0.1}]
    services.attempt_progress_store(attempt=attempt, points=first, at=company.at)
    services.attempt_progress_store(
        attempt=attempt, points=[{"step": 2, "loss": 4.0}, {"checkpoint": "c2"}], at=company.at
    )
    services.attempt_progress_store(
        attempt=attempt, points=[{"step": 2, "loss": 3.0}], at=company.at
    )

    one, two = selectors.job_curve_points(job)
    assert (one["step"], one["loss"], one["learning_rate"]) == (1, 5.0, 0.1)
    assert two == {"step": 2, "loss": 3.0}
    claim = claim_of(attempt)
    assert (claim.progress, claim.checkpointed_at) == (0.5, company.at)


@pytest.mark.parametrize("step", [None, -1, "3", True, 1.5])
def test_a_point_without_a_whole_step_is_refused(company: Company, step: object) -> None:
    _, attempt = company.running()
    with pytest.raises(services.ReportRefused, match="whole, non-negative number"):
        services.attempt_progress_store(attempt=attempt, points=[{"step": step}], at=company.at)


def test_a_manifest_that_lists_what_did_not_arrive_is_refused(company: Company) -> None:
    _, attempt = company.running()
    with pytest.raises(
        services.ReportRefused, match=r"'model\.safetensors', which was not uploaded"
    ):
        services.attempt_manifest_store(
            attempt=attempt,
            manifest={"files": [{"path": "model.safetensors", "sha256": "0" * 64, "size": 1}]},
        )
    services.attempt_upload_record(
        attempt=attempt, path="a.txt", digest=f"sha256:{'1' * 64}", size=1
    )
    with pytest.raises(services.ReportRefused, match="differs from the manifest"):
        services.attempt_manifest_store(
            attempt=attempt,
            manifest={"files": [{"path": "a.txt", "sha256": "0" * 64, "size": 1}]},
        )
    attempt.refresh_from_db()
    assert attempt.manifest is None
