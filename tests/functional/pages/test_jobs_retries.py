"""Retry policies in the forms of jobs, and retries on a job's page."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from apps.jobs import services
from apps.jobs.models import Attempt, Job
from controlplane.domain.common.reasons import Reason
from controlplane.domain.jobs.lifecycle import AttemptEvent, JobEvent
from controlplane.domain.jobs.retries import RetryCause, ScheduledRetry
from controlplane.domain.quotas.claims import ReleaseReason
from tests import factories
from tests.functional.sample_rows import FilledCompany

CHINESE = {"accept-language": "zh-hans"}
POLICY = {
    "max_retries": 2,
    "backoff_seconds": 30,
    "max_backoff_seconds": 60,
    "retry_on": ["killed", "user_error"],
}


@pytest.fixture
def retried(filled: FilledCompany) -> Job:
    """The running job in the back-off of its first retry."""
    attempt = filled.running.attempts.get()
    services.attempt_end(
        attempt=attempt,
        event=AttemptEvent.FAIL,
        job_event=JobEvent.REQUEUE,
        at=timezone.now(),
        reason=Reason(
            "attempt.retry.scheduled",
            "{reason}; retry {number} of {limit} starts in {seconds} s",
            reason=Reason("attempt.exit.killed_by_signal", "killed by {signal}", signal="SIGKILL"),
            number=1,
            limit=3,
            seconds=90,
        ),
        release=ReleaseReason.FINISHED,
        retry=ScheduledRetry(number=1, cause=RetryCause.KILLED, delay=timedelta(seconds=90)),
    )
    return filled.running


def test_the_page_shows_number_cause_and_start_of_a_retry(browser: Client, retried: Job) -> None:
    starts = Attempt.objects.get(job=retried, number=2).starts_after
    assert starts is not None
    for tab in ("overview", "events"):
        text = browser.get(f"/jobs/{retried.uid}?tab={tab}").text
        assert "Retry 1 of 3 · killed" in text, tab
        assert f'<time datetime="{starts.isoformat()}"' in text, tab
        assert "killed by SIGKILL; retry 1 of 3 starts in 90 s" in text, tab


def test_the_page_is_translated_to_chinese(browser: Client, retried: Job) -> None:
    text = browser.get(f"/jobs/{retried.uid}?tab=events", headers=CHINESE).text
    assert "第 1/3 次重试 · 被信号终止" in text
    assert "被 SIGKILL 终止；90 秒后开始第 1 次重试（上限 3）" in text


def test_a_cancelled_retry_no_longer_announces_its_start(browser: Client, retried: Job) -> None:
    services.job_cancel(job=retried, actor=retried.created_by, at=timezone.now())
    attempt = retried.attempts.get(number=2)
    services.attempt_end(
        attempt=attempt,
        event=AttemptEvent.WITHDRAW,
        job_event=JobEvent.CANCEL,
        at=timezone.now(),
        reason="cancelled by ada",
        release=ReleaseReason.CANCELLED,
    )
    text = browser.get(f"/jobs/{retried.uid}?tab=events").text
    assert "Retry 1 of 3 · killed" in text
    assert "· starts" not in text


def test_every_form_asks_for_the_policy_and_a_clone_keeps_it(
    browser: Client, filled: FilledCompany
) -> None:
    job = factories.job(
        actor=filled.user,
        team=filled.team,
        queue=filled.queue,
        model=filled.base,
        dataset=filled.dataset,
    )
    Job.objects.filter(pk=job.pk).update(retry_policy=POLICY)
    form = browser.get(f"/jobs/new/finetune?clone={job.uid}").context["form"]
    posted = {field.name: field.value() for field in form if field.value() is not None}
    browser.post("/jobs/new/finetune", posted)
    clone = Job.objects.latest("pk")
    assert clone.pk != job.pk
    assert clone.retry_policy == POLICY
    spec = browser.get(f"/jobs/{clone.uid}?tab=spec").text
    assert "up to 2, exponential back-off from 30 s to 60 s" in spec
    assert "retry_policy" in spec
    for kind in ("finetune", "evaluate", "quantize", "script"):
        shown = browser.get(f"/jobs/new/{kind}").text
        missing = [name for name in POLICY if f'name="retry_policy_{name}"' not in shown]
        assert missing == [], kind


def test_an_invalid_policy_is_refused_at_its_field(browser: Client, filled: FilledCompany) -> None:
    fields = {
        "team": filled.team.uid,
        "argv": "python",
        "chip": "cpu",
        "cards": "1",
        "priority": "0",
        "retry_policy_max_retries": "21",
        "retry_policy_backoff_seconds": "900",
    }
    before = Job.objects.count()
    response = browser.post("/jobs/new/script", fields)
    assert response.status_code == 422
    errors = response.context["form"].errors
    assert "got 21" in errors["retry_policy_max_retries"][0]
    assert "non-empty" in errors["retry_policy_retry_on"][0]
    assert Job.objects.count() == before
