"""Faults of a job's cards in its charts."""

from __future__ import annotations

from datetime import timedelta

from django.test import Client
from django.utils import timezone

from apps.fleet.models import Card
from apps.jobs.models import Attempt, ProgressPoint
from apps.monitoring.models import Fault
from apps.quotas.models import Allocation
from controlplane.domain.health.faults import FaultLevel
from tests import factories
from tests.functional.sample_rows import FilledCompany

HOUR = timedelta(hours=1)


def measured_for_two_hours(attempt: Attempt) -> None:
    """One step every twelve minutes since two hours ago, on cards that it has had since, without faults."""
    Fault.objects.all().delete()
    began = timezone.now() - 2 * HOUR
    Allocation.objects.filter(claim__uid=attempt.claim_uid).update(allocated_at=began)
    for number, point in enumerate(attempt.points.order_by("step")):
        ProgressPoint.objects.filter(pk=point.pk).update(at=began + number * HOUR / 5)


def test_faults_during_an_attempt_are_marked_at_the_step_that_it_had_reached(
    browser: Client, filled: FilledCompany
) -> None:
    attempt = filled.running.attempts.get()
    measured_for_two_hours(attempt)
    card = Card.objects.get(allocations__claim__uid=attempt.claim_uid)
    now = timezone.now()
    factories.fault(card, code="48", at=now - HOUR)
    factories.fault(card.node, code="NotReady", vendor="", at=now - HOUR + timedelta(minutes=1))
    factories.fault(card, code="74", at=now - timedelta(hours=1.99))
    # Before it had the card, too mild, of another card.
    factories.fault(card, code="31", at=now - 3 * HOUR)
    factories.fault(card, code="13", level=FaultLevel.NOTE, at=now - HOUR)
    other = Card.objects.filter(node=card.node).exclude(pk=card.pk)[0]
    factories.fault(other, code="94", at=now - HOUR)

    url = f"/jobs/{filled.running.uid}/fault-marks"
    assert f'data-chart-marks="{url}"' in browser.get(f"/jobs/{filled.running.uid}").text
    early, both = browser.get(url).json()["marks"]
    assert (early["x"], early["label"], early["kind"]) == (1, "74", "fault")
    assert (both["x"], both["label"]) == (6, "48, NotReady")
    lines = both["detail"].split("\n")
    assert lines[0].endswith(f"UTC · {card}")
    assert lines[1].startswith("48: Xid 48: Double Bit ECC Error")
    assert lines[2].endswith(f"UTC · {card.node}")
    chinese = browser.get(url, headers={"Accept-Language": "zh-hans"}).json()["marks"][1]["detail"]
    assert chinese.split("\n")[1].startswith("48: Xid 48")
    assert chinese != both["detail"]


def test_the_fault_of_a_crash_belongs_to_the_attempt_and_later_ones_do_not(
    browser: Client, filled: FilledCompany
) -> None:
    attempt = filled.failed.attempts.get()
    card = Card.objects.get(allocations__claim__uid=attempt.claim_uid)
    url = f"/jobs/{filled.failed.uid}/fault-marks"
    assert attempt.ended_at is not None
    factories.fault(card, code="94", at=attempt.ended_at + timedelta(seconds=1))
    assert browser.get(url).json()["marks"] == []
    factories.fault(card, code="48", at=attempt.ended_at)
    assert [mark["x"] for mark in browser.get(url).json()["marks"]] == [10]


def test_without_cards_or_metrics_there_are_no_marks(
    browser: Client, filled: FilledCompany
) -> None:
    attempt = filled.script.attempts.get()
    card = Card.objects.get(allocations__claim__uid=attempt.claim_uid)
    factories.fault(card, code="48", at=attempt.ended_at)
    attempt.points.all().delete()
    for job in (filled.waiting, filled.script):
        assert browser.get(f"/jobs/{job.uid}/fault-marks").json() == {"marks": []}
