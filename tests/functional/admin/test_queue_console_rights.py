"""Permissions in the queue console: queue admins for queues of their team, company administrators for all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client

from apps.quotas.models import Queue, QueueChange
from controlplane.domain.common.permissions import TeamRole
from controlplane.domain.quotas.queues import QueueState
from tests import factories
from tests.functional.admin import consoles
from tests.functional.admin.consoles import at, edit_page, preview, save
from tests.functional.admin.pages import page
from tests.integration.company import Company, entitle


@pytest.fixture
def given(company: Company) -> Queue:
    """A queue of the team below one for every team, with a sibling of another team."""
    science = consoles.queue(company, "science", guaranteed=8)
    consoles.queue(company, "secret-queue", team=company.other_team, parent=science)
    return consoles.queue(company, "speech", team=company.team, parent=science, guaranteed=4)


@pytest.fixture
def quinn(company: Company) -> Client:
    """A queue admin of the team."""
    client = Client()
    client.force_login(factories.user("quinn", team=company.team, role=TeamRole.QUEUE_ADMIN))
    return client


def pages_of(queue: Queue) -> Iterator[str]:
    yield from (edit_page(queue), page(Queue, "history", queue.pk), at("move", queue.pk))
    yield from (
        at("state", queue.pk, to="closed"),
        at("retire", queue.pk),
        at("export", of=queue.uid),
    )


@pytest.mark.parametrize(
    ("role", "status"),
    [
        (TeamRole.VIEWER, 403),
        (TeamRole.ENGINEER, 403),
        (TeamRole.QUEUE_ADMIN, 200),
        (TeamRole.ADMINISTRATOR, 200),
    ],
)
def test_access_to_the_console_by_role(
    company: Company, given: Queue, role: TeamRole, status: int
) -> None:
    client = Client()
    client.force_login(factories.user("somebody", team=company.team, role=role))

    shared = (page(Queue), at("list"), at("bulk"), at("import"), at("changes"), page(Queue, "add"))
    for address in (*shared, *pages_of(given)):
        assert client.get(address, follow=True).status_code == status, address
        if status == 403:
            assert client.post(address, {"save": "1"}).status_code in (302, 403), address
    assert not QueueChange.objects.exists()


def test_a_queue_admin_sees_queues_of_their_team_and_ancestors(
    company: Company, given: Queue, quinn: Client
) -> None:
    response = quinn.get(page(Queue))

    rows = {row.queue.name: row for row in response.context["rows"]}
    assert list(rows) == ["science", "speech"]
    assert not rows["science"].actions
    labels = [str(action.label) for action in rows["speech"].actions]
    assert "Edit" in labels
    assert "Move to…" not in labels
    assert "Retire" not in labels
    assert "secret-queue" not in response.content.decode()
    assert company.other_team.name not in response.content.decode()


def test_a_queue_admin_cannot_see_queues_of_other_teams(
    company: Company, given: Queue, quinn: Client
) -> None:
    for name in ("secret-queue", "science", "default"):
        queue = Queue.objects.get(name=name)
        for address in pages_of(queue):
            assert quinn.get(address).status_code == 404, address
            assert quinn.post(address, {"save": "1"}).status_code == 404 or "export" in address
    assert quinn.get(at("export")).status_code == 403
    bulk = quinn.get(at("bulk", uid=[Queue.objects.get(name="secret-queue").uid]))
    assert [line.document.name for line in bulk.context["grid_rows"]] == ["speech"]
    assert bulk.context["edited"] == []
    assert not QueueChange.objects.exists()


def test_a_queue_admin_cannot_change_quota_of_the_assigned_queue(
    company: Company, given: Queue, quinn: Client
) -> None:
    Queue.objects.filter(pk=given.pk).update(weight=2.5)
    forged = {
        "name": "renamed",
        "parent": "",
        "team": "",
        "weight": "9",
        "cards-cpu-guaranteed": "64",
        "state": "draining",
        "max_running_per_user": "3",
    }

    assert save(quinn, edit_page(given), **forged).status_code == 302

    given.refresh_from_db()
    assert (given.name, given.weight, given.team) == ("speech", 2.5, company.team)
    assert given.parent is not None
    assert given.entitlements.get().guaranteed == 4
    assert (given.state, given.max_running_per_user) == (QueueState.DRAINING, 3)


def test_a_queue_admin_manages_queues_below_the_assigned_queue_within_its_quota(
    company: Company, given: Queue, quinn: Client
) -> None:
    address = at("add", below=given.uid)
    fields = {"name": "dialects", "cards-cpu-guaranteed": "6"}
    refused = save(quinn, address, **fields)
    assert "speech is guaranteed 4" in " ".join(refused.context["review"].refusals)
    assert save(quinn, address, **{**fields, "cards-cpu-guaranteed": "3"}).status_code == 302

    created = Queue.objects.get(name="dialects")
    assert save(quinn, edit_page(created), weight="2", lends=None).status_code in (200, 302)
    assert save(quinn, at("retire", created.pk)).status_code == 302
    created.refresh_from_db()
    assert created.retired_at is not None


def test_an_import_respects_the_permissions_of_the_user(
    company: Company, given: Queue, quinn: Client
) -> None:
    text = "queues: {science: {cards: {cpu: {guaranteed: 99}}}}"

    review = preview(quinn, at("import"), text=text).context["review"]
    assert review.blocked
    assert "only an administrator of the company can change it" in " ".join(review.refusals)
    assert save(quinn, at("import"), text=text).status_code == 200
    assert not QueueChange.objects.exists()


def test_changes_of_other_teams_are_not_shown_or_reverted(
    company: Company, given: Queue, quinn: Client, browser: Client
) -> None:
    secret = Queue.objects.get(name="secret-queue")
    assert save(browser, edit_page(secret), weight="2", note="hush").status_code == 302
    change = QueueChange.objects.get()

    assert "hush" not in quinn.get(at("changes")).content.decode()
    assert quinn.get(at("change_detail", change.uid)).status_code == 404
    assert quinn.post(at("change_detail", change.uid), {"save": "1"}).status_code == 404
    secret.refresh_from_db()
    assert secret.weight == 2


def test_workloads_of_other_teams_are_shown_by_team_and_size_only(
    company: Company, given: Queue, quinn: Client
) -> None:
    entitle(given, guaranteed=2)
    below = consoles.queue(company, "dialects", team=company.team, parent=given)
    Queue.objects.filter(pk=below.pk).update(reclaims=False)
    secret = Queue.objects.get(name="secret-queue")
    running = consoles.borrowing(company, below, secret, user=company.stranger)

    response = preview(quinn, edit_page(below), reclaims="on")

    assert [one.claim for one in response.context["review"].reclaims] == [running.uid]
    shown = response.content.decode()
    assert "workload of another team" in shown
    assert "secret sweep" not in shown
