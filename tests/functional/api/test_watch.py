"""Watches of lists: every change once, in the order of commits, and nobody else's."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone
from rest_framework.test import APIClient, APIRequestFactory

from apps.accounts.models import PersonalToken, User
from apps.accounts.services.audit_log import record_audit_entry
from apps.accounts.services.users import company_roles_set
from apps.models.models import Dataset, ModelLine
from apps.models.services.dataset_and_model_changes import dataset_delete
from apps.quotas.models import Claim, Queue, UsageRecord
from controlplane.domain.common.permissions import CompanyRole, TeamRole
from controlplane.outbox.models import ResourceChange
from controlplane.outbox.resource_changes import change_horizon, delete_expired_changes
from controlplane.web import watch
from tests import factories
from tests.functional.api.callers import API, caller, problem, wrong_fields
from tests.integration.company import Company

DATASETS = f"{API}/datasets"


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(watch, "_AUTHENTICATE_EVERY", 0.0)


class Events:
    """The events of a watch, read one after the other."""

    def __init__(self, response: Any) -> None:
        assert response.status_code == 200, response.content
        assert response["Content-Type"].startswith("text/event-stream")
        self._chunks = iter(response.streaming_content)
        #: Of the last event that had one.
        self.position = ""

    def next(self, *, within: float = 120.0) -> tuple[str, Any]:
        """Type and object; the end of the stream is ``("END", None)``."""
        until = time.monotonic() + within
        for chunk in self._chunks:
            if chunk:
                lines = dict(line.split(": ", 1) for line in chunk.decode().strip().split("\n"))
                self.position = lines.get("id", self.position)
                data = json.loads(lines["data"])
                assert lines["event"] == data["type"]
                return data["type"], data["object"]
            assert time.monotonic() < until, "no event came"
        return "END", None

    def names(self, count: int) -> list[tuple[str, str]]:
        return [(kind, shown.get("name") or shown["uid"]) for kind, shown in self.several(count)]

    def several(self, count: int) -> list[tuple[str, Any]]:
        return [self.next() for _ in range(count)]

    def quiet(self, polls: int = 3) -> bool:
        """Whether the next reads of the log bring nothing."""
        return all(next(self._chunks) == b"" for _ in range(polls))


@contextmanager
def watching(client: APIClient, path: str = DATASETS, **headers: str) -> Iterator[Events]:
    response = client.get(f"{path}?watch=true", headers=headers)
    try:
        yield Events(response)
    finally:
        response.close()


def dataset(company: Company, name: str) -> Dataset:
    return Dataset.objects.create(team=company.team, name=name, created_by=company.engineer)


def test_a_watch_resumes_without_loss_or_repetition(committed_company: Company) -> None:
    company = committed_company
    engineer = caller(company.engineer)
    with watching(engineer) as events:
        assert events.names(1) == [("ADDED", "addresses")]
        assert events.next() == ("BOOKMARK", {"initial_events_end": True})
        written, release = threading.Event(), threading.Event()

        def commit_late() -> None:
            try:
                with transaction.atomic():
                    dataset(company, "slow")
                    written.set()
                    release.wait(120)
            finally:
                connection.close()

        slow = threading.Thread(target=commit_late)
        slow.start()
        assert written.wait(120)
        # It has the higher transaction identifier, and commits first.
        fast = dataset(company, "fast")
        assert events.quiet()
        release.set()
        slow.join(120)
        assert events.names(2) == [("ADDED", "slow"), ("ADDED", "fast")]
        assert events.quiet()
        engineer.patch(f"{DATASETS}/{fast.uid}", {"description": "of today"})
        kind, shown = events.next()
        assert (kind, shown["description"]) == ("MODIFIED", "of today")
        seen = events.position
    # While nobody watches: three objects in one transaction, and a deletion.
    with transaction.atomic():
        for name in ("one", "two", "three"):
            dataset(company, name)
    dataset_delete(dataset=fast, actor=company.engineer, at=timezone.now())
    with watching(engineer, last_event_id=seen) as events:
        # The connection breaks in the middle of a batch.
        assert events.names(2) == [("ADDED", "one"), ("ADDED", "two")]
        seen = events.position
    with watching(engineer, last_event_id=seen) as events:
        assert events.names(2) == [("ADDED", "three"), ("DELETED", fast.uid)]
        assert events.quiet()


def test_a_watch_shows_nothing_of_other_teams(committed_company: Company) -> None:
    company = committed_company
    stranger = caller(company.stranger)
    line = ModelLine.objects.create(team=None, name="shared")
    with watching(stranger) as datasets, watching(stranger, f"{API}/models") as models:
        assert datasets.next()[0] == "BOOKMARK"
        assert models.names(1) == [("ADDED", "shared")]
        assert models.next()[0] == "BOOKMARK"
        foreign = dataset(company, "foreign")
        Dataset.objects.filter(pk=foreign.pk).update(description="changed")
        dataset_delete(dataset=foreign, actor=company.engineer, at=timezone.now())
        ModelLine.objects.create(team=company.team, name="foreign")
        # No longer shared: the watch of the other team learns that, and nothing else.
        ModelLine.objects.filter(pk=line.pk).update(team=company.team)
        assert models.next() == ("DELETED", {"uid": line.uid})
        ModelLine.objects.filter(pk=line.pk).update(description="secret")
        assert models.quiet()
        assert datasets.quiet()
        position = datasets.position
    with watching(stranger, last_event_id=position) as datasets:
        assert datasets.quiet()
    # Filters apply to changes as they apply to the list.
    with watching(caller(company.engineer), f"{API}/models", accept="text/event-stream") as models:
        while models.next()[0] != "BOOKMARK":
            pass
        assert models.quiet()


def test_entries_that_are_only_added_follow_and_stay_in_their_team(
    committed_company: Company,
) -> None:
    company = committed_company
    administrators = {
        team: caller(factories.user(f"head-of-{team.slug}", team=team, role=TeamRole.ADMINISTRATOR))
        for team in (company.team, factories.team("elsewhere"))
    }
    root = caller(factories.user("root", admin=True))
    path, own = f"{API}/audit", administrators.pop(company.team)
    (other,) = administrators.values()
    with watching(own, path) as events, watching(other, path) as foreign:
        for each in (events, foreign):
            while each.next()[0] != "BOOKMARK":
                pass
        # The position of a bookmark may precede the initial events, for as long as transactions are open.
        record_audit_entry(actor=None, action="job.cancel", team=company.team, name="zero")
        assert events.next()[1]["object_name"] == "zero"
        seen = events.position
        record_audit_entry(actor=None, action="job.cancel", team=company.team, name="one")
        record_audit_entry(actor=None, action="cluster.change", name="of the company")
        kind, shown = events.next()
        assert (kind, shown["object_name"]) == ("ADDED", "one")
        assert events.quiet()
        assert foreign.quiet()
    record_audit_entry(actor=None, action="job.cancel", team=company.team, name="two")
    with watching(own, path, last_event_id=seen) as events:
        added = events.several(2)
        assert [(kind, shown["object_name"]) for kind, shown in added] == [
            ("ADDED", "one"),
            ("ADDED", "two"),
        ]
        assert events.quiet()
    with watching(other, path, last_event_id=seen) as foreign:
        assert foreign.quiet()
    with watching(root, path, last_event_id=seen) as events:
        names = [shown["object_name"] for _, shown in events.several(3)]
        assert names == ["one", "of the company", "two"]


def test_usage_records_follow_and_stay_in_their_team(committed_company: Company) -> None:
    company = committed_company
    path = f"{API}/usage/records"
    job = factories.job(
        actor=company.engineer, team=company.team, queue=Queue.objects.get(name="default"),
        model=company.model, dataset=company.dataset, name="metered",
    )  # fmt: skip
    factories.schedule()
    with (
        watching(caller(company.engineer), path) as events,
        watching(caller(company.stranger), path) as foreign,
    ):
        assert [events.next()[0], foreign.next()[0]] == ["BOOKMARK", "BOOKMARK"]
        claim = Claim.objects.get(owner_uid=job.attempts.get().uid)
        at = timezone.now()
        UsageRecord.objects.create(
            claim=claim, queue=claim.queue, team=claim.team, chip="cpu", cards=1,
            since=at - timedelta(seconds=60), until=at, card_microseconds=60_000_000,
        )  # fmt: skip
        kind, shown = events.next()
        assert (kind, shown["claim"], shown["cards"]) == ("ADDED", claim.uid, 1)
        assert events.quiet()
        assert foreign.quiet()


def test_company_roles_follow_for_administrators_only(committed_company: Company) -> None:
    path, user = f"{API}/company-roles", committed_company.engineer
    problem(caller(user).get(f"{path}?watch=true"), 403, "permission-refused")
    root = caller(factories.user("root", admin=True))
    with watching(root, path) as events:
        while events.next()[0] != "BOOKMARK":
            pass
        company_roles_set(user=user, roles=frozenset({CompanyRole.OPERATOR}), actor=None)
        kind, shown = events.next()
        assert (kind, shown["username"], shown["roles"]) == ("ADDED", user.username, ["operator"])
        seen = events.position
        company_roles_set(user=user, roles=frozenset(), actor=None)
        assert events.next() == ("DELETED", {"uid": user.uid})
    with watching(root, path, last_event_id=seen) as events:
        assert events.next() == ("DELETED", {"uid": user.uid})
        User.objects.filter(username="root").update(is_superuser=False)
        kind, shown = events.next()
        assert (kind, shown["status"]) == ("ERROR", 403)
        assert events.next() == ("END", None)


def test_a_watch_ends_when_its_token_is_revoked(committed_company: Company) -> None:
    with watching(caller(committed_company.engineer)) as events:
        assert [kind for kind, _ in events.several(2)] == ["ADDED", "BOOKMARK"]
        PersonalToken.objects.update(revoked_at=timezone.now())
        kind, shown = events.next()
        assert (kind, shown["status"], shown["code"]) == ("ERROR", 401, "authentication-failed")
        assert events.next() == ("END", None)


def test_invalid_and_expired_positions_are_refused(engineer: APIClient, company: Company) -> None:
    address = f"{DATASETS}?watch=true"
    wrong = engineer.get(address, headers={"last-event-id": "yesterday"})
    assert "yesterday" in wrong_fields(wrong)["Last-Event-ID"]
    horizon = change_horizon()
    old = watch.WatchPosition(log=horizon.log, after=horizon.xid, issued_at=int(time.time()) - 3700)
    other = watch.WatchPosition(log=1, after=horizon.xid, issued_at=int(time.time()))
    for position in (old, other):
        expired = engineer.get(address, headers={"last-event-id": str(position)})
        assert "older than one hour" in problem(expired, 410, "watch-position-expired")["detail"]
    assert "cursor" in wrong_fields(engineer.get(f"{address}&cursor=abc"))
    assert "watch" in wrong_fields(engineer.get(f"{DATASETS}?watch=maybe"))
    problem(engineer.get(address, headers={"accept": "application/xml"}), 406, "not-acceptable")
    problem(
        engineer.get(f"{API}/usage", headers={"accept": "text/event-stream"}), 406, "not-acceptable"
    )


def test_a_user_has_a_limited_number_of_watches(engineer: APIClient, company: Company) -> None:
    address = f"{DATASETS}?watch=true"
    opened = [engineer.get(address) for _ in range(watch.MAX_WATCHES_OF_USER)]
    refused = engineer.get(address)
    assert "you have 4 watches" in problem(refused, 429, "too-many-watches")["detail"]
    assert refused["Retry-After"] == "5"
    for response in opened:
        response.close()
    engineer.get(address).close()


def test_the_log_is_kept_until_positions_expire(company: Company) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE outbox_resource_change SET created_at = now() - interval '65 minutes'"
        )
    logged = ResourceChange.objects.count()
    assert logged > 0
    assert delete_expired_changes() == 0
    ResourceChange.objects.update(created_at=timezone.now() - timedelta(minutes=71))
    assert delete_expired_changes() == logged


def test_changes_of_every_list_are_logged(db: None) -> None:
    request = APIRequestFactory().get("/")
    request.user = factories.user("root", admin=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname = 'log_change'")
        logged = {name for (name,) in cursor.fetchall()}
    listed = {}
    for view in _list_views(get_resolver()):
        if view.watchable:
            rows = view(action="list", request=request, query={}, kwargs={}).get_queryset()
            listed[view.__name__] = rows.model._meta.db_table
    assert len(listed) > 30
    assert {name: table for name, table in listed.items() if table not in logged} == {}


def _list_views(resolver: URLResolver) -> Iterator[Any]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            yield from _list_views(pattern)
        elif isinstance(pattern, URLPattern):
            actions = getattr(pattern.callback, "actions", None) or {}
            view = getattr(pattern.callback, "cls", None)
            if actions.get("get") == "list" and hasattr(view, "watchable"):
                yield view
