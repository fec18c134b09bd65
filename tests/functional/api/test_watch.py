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
from apps.jobs.models import Attempt, Job
from apps.jobs.services import job_cancel
from apps.models.models import Dataset, ModelLine
from apps.models.services.dataset_and_model_changes import dataset_delete
from apps.quotas.models import Claim, Queue, UsageRecord
from apps.serving.models import DeploymentTransition, ReplicaTransition
from apps.workflows.models import PipelineTransition, StepTransition
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


def skip_initial(*watches: Events) -> None:
    for events in watches:
        while events.next()[0] != "BOOKMARK":
            pass


def a_job(company: Company, name: str) -> Job:
    return factories.job(
        actor=company.engineer, team=company.team, queue=Queue.objects.get(name="default"),
        model=company.model, dataset=company.dataset, name=name,
    )  # fmt: skip


def test_attempts_and_events_of_one_job_follow(committed_company: Company) -> None:
    company = committed_company
    job, other = a_job(company, "watched"), a_job(company, "other")
    path = f"{API}/jobs/{job.uid}"
    engineer = caller(company.engineer)
    for part in ("attempts", "events"):
        problem(caller(company.stranger).get(f"{path}/{part}?watch=true"), 404, "not-found")
        refused = engineer.get(f"{path}/{part}?cursor=abc")
        assert wrong_fields(refused).keys() == {"cursor"}, "these lists have no pages"
    with (
        watching(engineer, f"{path}/attempts") as attempts,
        watching(engineer, f"{path}/events") as events,
    ):
        kind, shown = attempts.next()
        assert (kind, shown["number"], shown["state"]) == ("ADDED", 1, "pending")
        skip_initial(attempts, events)
        # Not reported: metrics, and another job of the team.
        Attempt.objects.filter(job=job).update(progress={"loss": 1.0}, reported_at=timezone.now())
        job_cancel(job=other, actor=company.engineer, at=timezone.now())
        assert attempts.quiet()
        assert events.quiet()
        seen = attempts.position, events.position
        job_cancel(job=job, actor=company.engineer, at=timezone.now())
        company.turn_jobs()
        listed = engineer.get(f"{path}/events").json()
        assert len(listed) > 0
        assert [events.next() for _ in listed] == [("ADDED", one) for one in listed]
        kind, shown = attempts.next()
        assert (kind, shown["progress"]) == ("MODIFIED", {"loss": 1.0})
    with watching(engineer, f"{path}/events", last_event_id=seen[1]) as events:
        assert [events.next() for _ in listed] == [("ADDED", one) for one in listed]
        assert events.quiet()
    with watching(engineer, f"{path}/attempts", last_event_id=seen[0]) as attempts:
        while (event := attempts.next())[1].get("state") != "stopped":
            assert event[0] != "END"


def test_events_of_a_deployment_and_a_pipeline_follow_with_those_of_their_parts(
    committed_company: Company,
) -> None:
    company = committed_company
    queue = Queue.objects.get(name="default")
    deployment, other = (
        factories.deployment(
            actor=company.engineer, team=company.team, queue=queue, model=company.model, name=name
        )
        for name in ("parcels", "letters")
    )
    replica, foreign = (
        factories.replica(one, cluster=company.cluster_row) for one in (deployment, other)
    )
    pipeline = factories.pipeline(
        actor=company.engineer, team=company.team, queue=queue, model=company.model,
        dataset=company.dataset,
    )  # fmt: skip
    step = pipeline.steps.get(number=1)
    move = {"from_state": "a", "event": "go", "to_state": "b", "at": timezone.now()}
    engineer = caller(company.engineer)
    followed: tuple[tuple[str, str, tuple[tuple[Any, Any], ...], object], ...] = (
        (
            f"{API}/deployments/{deployment.uid}/events",
            "replica",
            (
                (DeploymentTransition, deployment),
                (ReplicaTransition, replica),
                (ReplicaTransition, foreign),
                (DeploymentTransition, other),
                (ReplicaTransition, replica),
            ),
            replica.uid,
        ),
        (
            f"{API}/pipelines/{pipeline.uid}/events",
            "step",
            (
                (PipelineTransition, pipeline),
                (StepTransition, step),
                (StepTransition, step),
            ),
            1,
        ),
    )
    for path, field, moves, part in followed:
        problem(caller(company.stranger).get(f"{path}?watch=true"), 404, "not-found")
        whole = "" if field == "replica" else None
        with watching(engineer, path) as events:
            initial = []
            while (event := events.next())[0] != "BOOKMARK":
                initial.append(event[1])
            listed = engineer.get(path).json()
            assert sorted(map(str, initial)) == sorted(map(str, listed))
            for model, entity in moves[:2]:
                model.objects.create(entity=entity, actor="mei", **move)
            seen: list[tuple[str, Any]] = []
            for _ in range(2):
                kind, shown = events.next()
                assert kind == "ADDED"
                seen.append((shown["actor"], shown[field]))
            assert seen == [("mei", whole), ("mei", part)]
            position = events.position
        for model, entity in moves[2:]:
            model.objects.create(entity=entity, actor="otto", **move)
        with watching(engineer, path, last_event_id=position) as events:
            kind, shown = events.next()
            assert (kind, shown["actor"], shown[field]) == ("ADDED", "otto", part)
            assert events.quiet()


def test_members_retention_rules_and_card_rates_follow(committed_company: Company) -> None:
    company = committed_company
    team, user = company.team, factories.user("new")
    root = caller(factories.user("root", admin=True))
    path = f"{API}/teams/{team.uid}/members"
    problem(caller(company.stranger).get(f"{path}?watch=true"), 404, "not-found")
    with (
        watching(root, path) as members,
        watching(root, f"{API}/storage/rules") as rules,
        watching(caller(company.stranger), f"{API}/storage/rules") as foreign,
        watching(root, f"{API}/usage/rates") as rates,
    ):
        skip_initial(members, rules, foreign, rates)
        root.put(f"{path}/{user.uid}", {"roles": ["viewer"]})
        kind, shown = members.next()
        assert (kind, shown["username"], shown["roles"]) == ("ADDED", "new", ["viewer"])
        assert shown in root.get(path).json()
        position = members.position
        root.put(f"{path}/{user.uid}", {"roles": ["engineer", "viewer"]})
        kind, shown = members.next()
        assert (kind, sorted(shown["roles"])) == ("MODIFIED", ["engineer", "viewer"])

        given = {"enabled": True, "keep_versions": 5, "checkpoint_days": None, "failed_days": None,
                 "log_days": 9}  # fmt: skip
        root.put(f"{API}/storage/rules/{team.uid}", given)
        kind, shown = rules.next()
        assert (kind, shown["team"]["uid"], shown["rules"]) == ("ADDED", team.uid, given)
        assert foreign.quiet()
        root.put(f"{API}/storage/rules/others", {**given, "log_days": 3})
        for each in (rules, foreign):
            kind, shown = each.next()
            assert (kind, shown["team"], shown["rules"]["log_days"]) == ("ADDED", None, 3)
        first, second = root.get(f"{API}/storage/rules").json()
        assert (first["team"], second["team"]["uid"]) == (None, team.uid)
        root.delete(f"{API}/storage/rules/{team.uid}")
        assert rules.next() == ("DELETED", {"uid": team.uid})

        root.put(f"{API}/usage/rates/nvidia-h800", {"per_hour": "26.5"})
        assert rates.next() == ("ADDED", root.get(f"{API}/usage/rates").json()[0])
        root.put(f"{API}/usage/rates/nvidia-h800", {"per_hour": "27"})
        kind, shown = rates.next()
        assert (kind, shown["per_hour"]) == ("MODIFIED", "27.0000")
        root.delete(f"{API}/usage/rates/nvidia-h800")
        assert rates.next() == ("DELETED", {"uid": "nvidia-h800"})
    root.delete(f"{path}/{user.uid}")
    with watching(root, path, last_event_id=position) as members:
        assert members.next() == ("DELETED", {"uid": user.uid})
        assert members.quiet()


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
    listed: dict[str, str] = {}
    for view in _list_views(get_resolver()):
        if view.watchable:
            found = view(action="list", request=request, query={}, kwargs={}).watched_rows()
            listed |= {f"{view.__name__} {rows.model.__name__}": rows.model._meta.db_table
                       for rows in found}  # fmt: skip
    assert len(listed) > 40
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
