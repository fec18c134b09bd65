"""Which failures a retry policy retries, how often, and after how long."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.domain.jobs.retries import (
    FIELDS,
    INFRASTRUCTURE,
    RetryCause,
    RetryPolicy,
    check_policy,
    decide_retry,
    log_shows_killed_worker,
)

POLICIES = st.builds(
    RetryPolicy,
    max_retries=st.integers(0, 20),
    backoff_seconds=st.integers(0, 3600),
    max_backoff_seconds=st.integers(3600, 86_400),
    retry_on=st.lists(st.sampled_from(RetryCause), min_size=1, unique=True).map(tuple),
)
CAUSES = st.none() | st.sampled_from(RetryCause)


def policy(**values: Any) -> RetryPolicy:
    assert check_policy(values) == ()
    return RetryPolicy.from_json(values)


def test_infrastructure_failures_are_retried_by_default_and_user_errors_are_not() -> None:
    default = policy()
    assert default.max_retries == 3
    retried = {
        cause
        for cause in RetryCause
        if decide_retry(default, cause=cause, retries=0, reason="x").retry
    }
    assert retried == set(INFRASTRUCTURE) == set(RetryCause) - {RetryCause.USER_ERROR}
    assert decide_retry(default, cause=None, retries=0, reason="out of memory").retry is None


def test_user_errors_are_retried_if_the_policy_names_them() -> None:
    decision = decide_retry(
        policy(retry_on=["user_error"]), cause=RetryCause.USER_ERROR, retries=0, reason="boom"
    )
    assert decision.retry is not None
    assert decision.reason == "boom; retry 1 of 3 starts in 10 s"


def test_the_delay_doubles_up_to_its_cap() -> None:
    delays = [policy(backoff_seconds=10, max_backoff_seconds=60).backoff(n) for n in range(1, 6)]
    assert [delay.total_seconds() for delay in delays] == [10, 20, 40, 60, 60]


def test_exhausted_retries_show_their_number_and_the_last_cause() -> None:
    decision = decide_retry(
        policy(max_retries=2), cause=RetryCause.KILLED, retries=2, reason="killed by SIGKILL"
    )
    assert decision.retry is None
    assert decision.reason == ("killed by SIGKILL; failed after 2 of 2 retries, last cause: killed")


def test_a_policy_without_retries_keeps_the_reason() -> None:
    decision = decide_retry(
        policy(max_retries=0), cause=RetryCause.KILLED, retries=0, reason="killed"
    )
    assert (decision.retry, decision.reason) == (None, "killed")


@given(POLICIES, CAUSES)
def test_a_job_that_always_fails_is_retried_max_retries_times(
    policy: RetryPolicy, cause: RetryCause | None
) -> None:
    retries, delay = 0, timedelta()
    while (
        retry := decide_retry(policy, cause=cause, retries=retries, reason="x").retry
    ) is not None:
        assert retry.number == retries + 1
        assert delay <= retry.delay <= timedelta(seconds=policy.max_backoff_seconds)
        retries, delay = retry.number, retry.delay
    assert retries == (policy.max_retries if cause in policy.retry_on else 0)


@given(POLICIES)
def test_a_stored_policy_is_read_back_as_it_was(policy: RetryPolicy) -> None:
    assert check_policy(policy.as_json()) == ()
    assert RetryPolicy.from_json(policy.as_json()) == policy


@pytest.mark.parametrize(
    ("values", "field", "message"),
    [
        ({"max_retries": 21}, "max_retries", "≥ 0, ≤ 20, got 21"),
        ({"max_retries": True}, "max_retries", "a whole number"),
        ({"backoff_seconds": -1}, "backoff_seconds", "got -1"),
        ({"backoff_seconds": 600}, "backoff_seconds", "at most max_backoff_seconds, which is 360"),
        ({"retry_on": ["oom"]}, "retry_on", "one of killed, hardware_error"),
        ({"retry_on": []}, "retry_on", "non-empty"),
        ({"retries": 2}, "retries", "unknown field"),
    ],
)
def test_an_invalid_policy_is_refused_with_the_field_and_the_limit(
    values: dict[str, Any], field: str, message: str
) -> None:
    (finding,) = check_policy(values)
    assert finding.field == f"retry_policy.{field}"
    assert message in finding.message


def test_every_field_has_a_default() -> None:
    assert set(policy().as_json()) == {field.name for field in FIELDS}


@pytest.mark.parametrize(
    ("line", "killed"),
    [
        ("  traceback : Signal 9 (SIGKILL) received by PID 4711", True),
        ("  traceback : Signal 15 (SIGTERM) received by PID 4711", True),
        ("  traceback : Signal 11 (SIGSEGV) received by PID 4711", False),
        ("ValueError: no rows", False),
    ],
)
def test_a_killed_worker_is_detected_in_the_log_of_torchrun(line: str, killed: bool) -> None:
    assert log_shows_killed_worker(f"Root Cause:\n{line}\n====") is killed
