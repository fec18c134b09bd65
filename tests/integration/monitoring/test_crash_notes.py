"""A crash that looks like hardware is noted at the cards of its job, and never more than noted."""

from __future__ import annotations

from typing import Any

import pytest

from apps.jobs.models import Attempt, Job
from apps.monitoring.models import Fault
from apps.monitoring.services.faults import job_crash_record
from apps.monitoring.tasks import on_job_ended_note_crash
from config.tasks import TOPICS
from controlplane.domain.health.faults import FaultLevel, SignalOrigin
from controlplane.domain.jobs.lifecycle import JobKind, JobState
from tests import factories
from tests.integration.monitoring.conftest import Office
from tests.integration.monitoring.wards import NOON

pytestmark = pytest.mark.django_db
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=12, GPU has fallen off the bus."


def crashed(office: Office, tail: str) -> Job:
    here = factories.cluster(cards=2)
    work: dict[str, Any] = {"team": office.team, "actor": office.ada, "queue": office.queue}
    job = factories.job(**work, kind=JobKind.SCRIPT)
    attempt = factories.failed(job, cluster=here)
    Attempt.objects.filter(pk=attempt.pk).update(log_tail=tail)
    return job


def test_it_is_a_note_at_each_card_that_the_job_held_whatever_the_log_says(office: Office) -> None:
    job = crashed(office, f"step 8\n{XID}\n")
    assert job_crash_record(job_uid=job.uid, at=NOON) == 1
    fault = Fault.objects.get()
    assert (fault.origin, fault.level, fault.vendor) == (
        SignalOrigin.JOB,
        FaultLevel.NOTE,
        "nvidia",
    )
    assert fault.code == "79"
    assert job.name not in fault.message
    assert XID not in fault.message
    assert fault.card is not None


@pytest.mark.parametrize("tail", ["No space left on device", "ValueError: no such column", ""])
def test_what_the_program_did_itself_or_nobody_knows_leaves_no_note(
    office: Office, tail: str
) -> None:
    job = crashed(office, tail)
    assert job_crash_record(job_uid=job.uid, at=NOON) == 0
    assert not Fault.objects.exists()


def test_news_that_comes_twice_is_noted_once_and_news_of_other_ends_is_not(office: Office) -> None:
    job = crashed(office, XID)
    event = {"event_uid": "e", "job_uid": job.uid, "reason": "", "at": NOON.isoformat()}
    on_job_ended_note_crash(**event, state=JobState.SUCCEEDED)
    assert not Fault.objects.exists()
    for _ in range(2):
        on_job_ended_note_crash(**event, state=JobState.FAILED)
    assert Fault.objects.get().count == 1
    assert on_job_ended_note_crash in TOPICS["job.ended"]


def test_a_job_that_is_gone_is_no_trouble() -> None:
    assert job_crash_record(job_uid="gone", at=NOON) == 0
