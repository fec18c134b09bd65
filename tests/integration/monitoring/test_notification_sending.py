"""What happens is told once, to those who want to know, in one line for what belongs together."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone, translation

from apps.accounts.models import User
from apps.jobs import services as jobs
from apps.notifications.models import Event, Notification
from apps.notifications.selectors.notifications import (
    NOTIFICATION_LABELS,
    DeliveryPreference,
    notification_bell,
    notifications_of_user,
    render_notification,
)
from apps.notifications.services.notifications import (
    delivery_preferences_set,
    notification_events_prune,
    notification_send_test,
    notifications_mark_read,
    notifications_mark_unread,
)
from apps.serving.services.deployments import deployment_transition
from controlplane.domain.alerts.notifications import (
    COLLAPSED_WITHIN,
    NOTIFICATION_TYPES,
    NotificationKind,
)
from controlplane.domain.jobs.lifecycle import JobEvent, JobKind
from controlplane.domain.serving.lifecycle import DeploymentEvent
from tests import factories
from tests.integration.monitoring.conftest import Office
from tests.integration.monitoring.notifications import deliver_messages, notify
from tests.integration.threads import at_once

FAILED, DEGRADED = NotificationKind.JOB_FAILED, NotificationKind.DEPLOYMENT_DEGRADED


def kinds_for(user: User) -> list[str]:
    return [row.kind for row in Notification.objects.filter(recipient=user).order_by("id")]


def test_every_kind_has_its_words() -> None:
    assert set(NOTIFICATION_LABELS) == set(NOTIFICATION_TYPES) == set(NotificationKind)


def test_a_job_that_fails_is_told_to_whoever_made_it_once(office: Office) -> None:
    job = factories.job(actor=office.ada, team=office.team, queue=office.queue, kind=JobKind.SCRIPT)
    factories.failed(job, cluster=factories.cluster())
    deliver_messages("job.ended")
    (row,) = Notification.objects.filter(recipient=office.ada)
    assert (row.kind, row.count, row.event.subject_uid) == (FAILED, 1, job.uid)
    assert render_notification(row.event).title == "teach addresses has failed"
    assert render_notification(row.event).detail == "ended with exit code 28: the disk is full"
    assert render_notification(row.event).href == f"/jobs/{job.uid}"
    assert [kinds_for(one) for one in (office.bob, office.vera, office.eve)] == [[], [], []]


def test_a_job_that_goes_well_is_told_too(office: Office) -> None:
    job = factories.job(actor=office.ada, team=office.team, queue=office.queue, kind=JobKind.SCRIPT)
    factories.succeeded(job, cluster=factories.cluster())
    deliver_messages("job.ended")
    assert kinds_for(office.ada) == [NotificationKind.JOB_SUCCEEDED]


@pytest.mark.parametrize(("canceller", "notified"), [("ada", False), ("bob", True)])
def test_who_cancels_a_job_knows_that_already(
    office: Office, canceller: str, notified: bool
) -> None:
    job = factories.job(actor=office.ada, team=office.team, queue=office.queue, kind=JobKind.SCRIPT)
    now = timezone.now()
    jobs.job_cancel(job=job, actor=getattr(office, canceller), at=now)
    job.refresh_from_db()
    jobs.job_transition(job, JobEvent.CANCEL, at=now, reason=f"cancelled by {canceller}")
    deliver_messages("job.ended")
    assert kinds_for(office.ada) == ([NotificationKind.JOB_CANCELLED] if notified else [])


def test_a_deployment_in_trouble_and_its_recovery_reach_the_whole_team(office: Office) -> None:
    model = factories.model_version(actor=office.ada, team=office.team)
    one = factories.deployment(actor=office.ada, team=office.team, queue=office.queue, model=model)
    factories.replica(one, cluster=factories.cluster(), ready=False)
    deliver_messages("deployment.degraded")
    assert [kinds_for(user) for user in (office.ada, office.bob, office.eve)] == [
        [DEGRADED],
        [DEGRADED],
        [],
    ]
    one.refresh_from_db()
    deployment_transition(
        one, DeploymentEvent.BECOME_READY, at=timezone.now(), reason="1 of 1 replicas are ready"
    )
    deliver_messages("deployment.ready")
    (row,) = Notification.objects.filter(recipient=office.bob)
    assert (row.kind, row.count) == (NotificationKind.DEPLOYMENT_RECOVERED, 2)


def test_a_deployment_that_flaps_makes_one_line_with_a_count(office: Office) -> None:
    began = timezone.now()
    for turn in range(10):
        at = began + timedelta(seconds=30 * turn)
        kind = DEGRADED if turn % 2 == 0 else NotificationKind.DEPLOYMENT_RECOVERED
        notify(kind, team=office.team, creator=office.ada, at=at)
    (row,) = Notification.objects.filter(recipient=office.ada)
    assert (row.count, row.first_at, row.at) == (10, began, began + timedelta(seconds=270))
    assert row.kind == NotificationKind.DEPLOYMENT_RECOVERED
    later = began + COLLAPSED_WITHIN
    notify(DEGRADED, team=office.team, creator=office.ada, at=later)
    assert Notification.objects.filter(recipient=office.ada).count() == 2


def test_news_that_was_overtaken_does_not_hide_newer_news(office: Office) -> None:
    now = timezone.now()
    notify(NotificationKind.DEPLOYMENT_RECOVERED, team=office.team, creator=office.ada, at=now)
    early = now - timedelta(seconds=5)
    notify(DEGRADED, team=office.team, creator=office.ada, at=early, reason="0 of 1")
    (row,) = Notification.objects.filter(recipient=office.ada)
    assert (row.kind, row.count, row.at) == (NotificationKind.DEPLOYMENT_RECOVERED, 2, now)


def test_what_was_read_is_unread_again_when_it_goes_on(office: Office) -> None:
    now = timezone.now()
    notify(DEGRADED, team=office.team, creator=office.ada, at=now)
    assert notifications_mark_read(user=office.ada, uids=None, at=now) == 1
    notify(DEGRADED, team=office.team, creator=office.ada, at=now + timedelta(minutes=1))
    assert notification_bell(office.ada).unread == 1


def test_reading_can_be_taken_back_and_touches_nobody_elses(office: Office) -> None:
    now = timezone.now()
    for number in range(3):
        subject = f"{number:032x}"
        notify(DEGRADED, team=office.team, creator=office.ada, at=now, subject=subject)
    first = notifications_of_user(office.ada)[0].uid
    assert notifications_mark_read(user=office.bob, uids=[first], at=now) == 0
    assert notifications_mark_read(user=office.ada, uids=[first], at=now) == 1
    later = now + timedelta(seconds=1)
    assert notifications_mark_read(user=office.ada, uids=None, at=later) == 2
    assert notifications_mark_unread(user=office.ada, read_at=later) == 2
    assert (notification_bell(office.ada).unread, notification_bell(office.bob).unread) == (2, 3)


def test_everybody_hears_as_they_wish(office: Office) -> None:
    disabled = DeliveryPreference(kind=DEGRADED, page=False, email=False, whole_team=False)
    curious = DeliveryPreference(kind=FAILED, page=True, email=False, whole_team=True)
    delivery_preferences_set(user=office.ada, preferences=[disabled])
    delivery_preferences_set(user=office.bob, preferences=[curious, disabled])
    delivery_preferences_set(user=office.bob, preferences=[curious])
    now = timezone.now()
    for kind in (FAILED, DEGRADED):
        notify(kind, team=office.team, creator=office.ada, at=now)
    assert kinds_for(office.ada) == [FAILED]
    assert kinds_for(office.bob) == [FAILED]


def test_who_has_left_the_team_hears_nothing_more(office: Office) -> None:
    office.ada.memberships.all().delete()
    office.bob.is_active = False
    office.bob.save()
    notify(DEGRADED, team=office.team, creator=office.ada, at=timezone.now())
    assert [kinds_for(one) for one in (office.ada, office.bob)] == [[], []]
    assert kinds_for(office.vera) == [DEGRADED]


@pytest.mark.django_db(transaction=True)
def test_the_same_news_from_two_workers_at_once_is_told_once(office: Office) -> None:
    now = timezone.now()

    def work() -> bool:
        return notify(FAILED, team=office.team, creator=office.ada, at=now, uid="b" * 32)

    assert at_once(work, work, work).count(True) == 1
    assert Event.objects.count() == 1
    assert kinds_for(office.ada) == [FAILED]


@pytest.mark.django_db(transaction=True)
def test_two_events_of_one_subject_at_once_make_one_line(office: Office) -> None:
    now = timezone.now()

    def work() -> bool:
        return notify(DEGRADED, team=office.team, creator=office.ada, at=now)

    assert all(at_once(work, work, work, work))
    (row,) = Notification.objects.filter(recipient=office.ada)
    assert row.count == 4


def test_a_line_is_worded_when_it_is_read(office: Office) -> None:
    notify(FAILED, team=office.team, creator=office.ada, at=timezone.now(), name="parcels")
    event = Event.objects.get()
    with translation.override("zh-hans"):
        assert render_notification(event).title == "parcels 失败了"
    with translation.override("en"):
        assert render_notification(event).title == "parcels has failed"


def test_a_test_reaches_whoever_asked(office: Office) -> None:
    notification_send_test(user=office.ada, at=timezone.now())
    assert kinds_for(office.ada) == [NotificationKind.TEST]
    assert (
        notification_bell(office.ada).newest[0].rendered.title == "Test notification, sent by ada"
    )


def test_old_news_is_forgotten_with_its_lines(office: Office) -> None:
    now = timezone.now()
    notify(FAILED, team=office.team, creator=office.ada, at=now - timedelta(days=91))
    notify(FAILED, team=office.team, creator=office.ada, at=now, subject="c" * 32)
    assert notification_events_prune(at=now) == 1
    assert len(kinds_for(office.ada)) == 1
