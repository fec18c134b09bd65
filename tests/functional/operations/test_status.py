"""What operators and administrators are told of the product itself, and nobody else."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apps.accounts.models import User
from apps.console.web.system_status import lagging_controllers
from apps.fleet.models import Cluster, Node
from apps.fleet.services import inventory_record
from apps.fleet.services.clusters import LEASE, cluster_remove
from apps.serving.models import Gateway, GatewaySnapshot
from apps.serving.selectors import workloads_using_cluster
from apps.telemetry.models import NodeToken
from apps.telemetry.services.node_tokens import node_token_issue
from controlplane.domain.common.permissions import CompanyRole, TeamRole
from controlplane.domain.common.reasons import Reason
from controlplane.outbox.models import OutboxMessage
from controlplane.persistence import reconcile_runs
from controlplane.persistence.leases import hold_leader_lease
from controlplane.persistence.models import ControllerState
from controlplane.ports import adapter_registry
from tests import factories
from tests.functional.operations.caches import expire
from tests.functional.pages.test_every_page import check

QUICK = "config.tasks.relay_outbox"


@pytest.fixture
def page(client: Client, admin: User, home: Path) -> Client:
    client.force_login(admin)
    return client


def status(client: Client) -> dict[str, Any]:
    answer = client.get("/api/v1/status")
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def conditions(client: Client) -> dict[str, str]:
    return {
        f"{one['kind']} {one['name']}".strip(): one["condition"]
        for one in status(client)["components"]
    }


def all_turn() -> None:
    for name in reconcile_runs.controller_intervals():
        reconcile_runs.record_reconcile_start(name)
        reconcile_runs.record_reconcile_end(name, seconds=0.01, handled=1)


def age(seconds: float, *names: str) -> None:
    """Let that much time pass for those loops, or for all."""
    past = timedelta(seconds=seconds)
    rows = (
        ControllerState.objects.filter(name__in=names) if names else ControllerState.objects.all()
    )
    for row in rows:
        for field in ("started_at", "ended_at", "succeeded_at"):
            value = getattr(row, field)
            setattr(row, field, value and value - past)
        row.save()


def test_a_healthy_product_is_shown_as_healthy(page: Client) -> None:
    all_turn()
    found = status(page)
    assert found["condition"] == "well"
    assert {controller["health"] for controller in found["controllers"]} == {"on_time"}
    assert {controller["handled"] for controller in found["controllers"]} == {1}
    assert set(conditions(page).values()) == {"well"}
    text = page.get("/status").text
    check(text)
    assert "All components are healthy and no controller is lagging." in text
    assert text.count('<svg class="nf-run-chart"') == len(found["controllers"])


def test_the_status_page_renders_before_the_first_run(page: Client) -> None:
    text = page.get("/status").text
    check(text)
    assert conditions(page)["worker"] == "unknown"
    assert "No controller has run yet." in text


def test_calls_that_nobody_takes_mean_that_the_worker_is_missing(
    page: Client, broker_folder: Path
) -> None:
    all_turn()
    age(20)
    (broker_folder / "1_a.beat.msg").touch()
    found = conditions(page)
    assert (found["worker"], found["beat"]) == ("down", "well")
    text = page.get("/status").text
    assert "not processing: 1 scheduled task pending" in text
    assert "var/logs/worker.log" in text


def test_no_calls_mean_that_the_beat_is_missing(page: Client) -> None:
    all_turn()
    age(20)
    found = conditions(page)
    assert (found["worker"], found["beat"]) == ("unknown", "down")
    assert "Exactly one Celery beat" in page.get("/status").text


def test_a_failing_controller_is_shown_with_its_error(page: Client) -> None:
    all_turn()
    for _ in range(3):
        reconcile_runs.record_reconcile_end(
            QUICK, seconds=0.02, error="ConnectionError: <refused> & closed"
        )
    found = status(page)
    (failing,) = [controller for controller in found["controllers"] if controller["name"] == QUICK]
    assert (failing["health"], failing["failures"], failing["failed_runs"]) == ("failing", 3, 3)
    assert conditions(page)["worker"] == "degraded"
    text = page.get("/status").text
    assert "ConnectionError: &lt;refused&gt; &amp; closed" in text


def test_an_outbox_backlog_is_shown_as_a_problem(page: Client) -> None:
    message = OutboxMessage.objects.create(topic="claim.requested", payload={})
    assert conditions(page)["outbox"] == "well"
    OutboxMessage.objects.filter(pk=message.pk).update(created_at=Now() - timedelta(minutes=2))
    assert conditions(page)["outbox"] == "degraded"


def test_messages_without_subscribers_are_shown(page: Client) -> None:
    OutboxMessage.objects.create(topic="claim.requested", payload={})
    OutboxMessage.objects.create(topic="moon.full", payload={})
    assert conditions(page)["outbox"] == "degraded"
    text = page.get("/status").text
    check(text)
    assert "1 of 2 pending messages have no subscriber" in text
    assert "in this version: moon.full" in text


def test_run_durations_are_formatted(page: Client) -> None:
    all_turn()
    reconcile_runs.record_reconcile_end(QUICK, seconds=0.005484)
    text = page.get("/status").text
    assert ">5 ms</td>" in text
    assert "0.005484" not in text


def test_gateways_are_judged_by_when_they_asked_and_by_what_they_have(page: Client) -> None:
    now = timezone.now()
    issued = now - timedelta(minutes=5)
    snapshot = GatewaySnapshot.objects.create(digest="d", body=b"", issued_at=issued)
    for name, seen, version in (
        ("fresh", now, snapshot.version),
        ("behind", now, snapshot.version - 1),
        ("silent", now - timedelta(minutes=5), snapshot.version),
        ("forgotten", now - timedelta(days=2), snapshot.version),
    ):
        Gateway.objects.create(name=name, last_seen_at=seen, version=version)
    found = conditions(page)
    assert found["gateway fresh"] == "well"
    assert found["gateway behind"] == "degraded"
    assert found["gateway silent"] == "down"
    assert "gateway forgotten" not in found


def test_a_cluster_says_what_it_refused(page: Client) -> None:
    factories.cluster(name="here")
    Cluster.objects.create(name="away", kind="local", error="the folder cannot be read")
    Cluster.objects.create(name="new", kind="local")
    found = conditions(page)
    assert found["cluster here"] == "well"
    assert found["cluster away"] == "down"
    assert found["cluster new"] == "unknown"
    assert "the folder cannot be read" in page.get("/status").text


def test_what_a_cluster_refused_is_told_in_the_readers_language(page: Client) -> None:
    refusal = Reason(
        "telemetry_source.response.unexpected_status",
        "the response has status {status}",
        status=503,
    )
    Cluster.objects.create(name="away", kind="local", error=refusal)
    text = page.get("/status", headers={"accept-language": "zh-hans"}).text
    assert text.count("响应状态码为 503") == 2
    assert "the response has status" not in text


def test_a_broker_that_is_gone_does_not_take_the_page_with_it(
    page: Client, broker_folder: Path
) -> None:
    broker_folder.rmdir()
    assert conditions(page)["broker"] == "down"
    assert page.get("/status").status_code == 200


def test_a_disk_with_little_room_is_trouble(page: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for free, condition in ((20 << 30, "well"), (5 << 30, "degraded"), (1 << 20, "down")):
        usage = type("Usage", (), {"free": free, "total": 100 << 30, "used": 0})
        monkeypatch.setattr(shutil, "disk_usage", lambda _path, found=usage: found)
        assert conditions(page)["disk home"] == condition


def test_htmx_gets_the_part_that_changes_and_goes_on(page: Client) -> None:
    answer = page.get("/status", headers={"HX-Request": "true"})
    assert answer.status_code == 200
    assert "<html" not in answer.text
    assert 'id="controllers"' in answer.text


def test_the_page_costs_few_queries(
    page: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    all_turn()
    page.get("/status")
    with django_assert_max_num_queries(12):
        page.get("/status")


@pytest.mark.parametrize(
    ("role", "code"),
    [
        (CompanyRole.OPERATOR, 200),
        (TeamRole.ADMINISTRATOR, 200),
        (TeamRole.ENGINEER, 403),
        (TeamRole.QUEUE_ADMIN, 200),
        (TeamRole.VIEWER, 403),
    ],
)
def test_it_is_for_operators_and_administrators_of_all_kinds(
    client: Client, home: Path, db: None, role: TeamRole | CompanyRole, code: int
) -> None:
    if isinstance(role, TeamRole):
        user = factories.user("mei", team=factories.team(), role=role)
    else:
        user = factories.user("mei", operator=role is CompanyRole.OPERATOR)
    client.force_login(user)
    for path in ("/status", "/api/v1/status"):
        answer = client.get(path)
        assert answer.status_code == code, path
        assert ("Celery" in answer.text) == (code == 200)


def test_strangers_log_in_first(client: Client, db: None) -> None:
    assert client.get("/status").status_code == 302
    assert client.get("/api/v1/status").status_code == 401


def test_operators_see_lagging_controllers_on_every_page(page: Client) -> None:
    all_turn()
    assert "nf-lagging" not in page.get("/profile").text
    age(60, QUICK)
    expire(lagging_controllers)
    assert "nf-lagging" not in page.get("/profile").text, "busy for a minute"
    age(61, QUICK)
    expire(lagging_controllers)
    text = page.get("/profile").text
    check(text)
    assert "1 controller is lagging." in text
    age(121)
    expire(lagging_controllers)
    assert "controllers are lagging." in page.get("/profile").text


def test_engineers_do_not_see_lagging_controllers(client: Client, home: Path, db: None) -> None:
    all_turn()
    age(1000)
    client.force_login(factories.user(team=factories.team()))
    assert "nf-lagging" not in client.get("/profile").text


def test_queue_admins_do_not_see_lagging_controllers(client: Client, home: Path, db: None) -> None:
    all_turn()
    age(1000)
    expire(lagging_controllers)
    user = factories.user("queues")
    User.objects.filter(pk=user.pk).update(is_staff=True)
    client.force_login(user)
    assert "nf-lagging" not in client.get("/profile").text


def test_the_check_for_lagging_controllers_is_cached(
    admin: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        lagging_controllers()
    with django_assert_num_queries(0):
        for _ in range(50):
            lagging_controllers()


@pytest.fixture
def speaking(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster of a kind that says by itself when something changed."""
    monkeypatch.setattr(adapter_registry, "cluster_is_watchable", lambda kind: kind == "speaking")
    return Cluster.objects.create(name="east", kind="speaking", last_seen_at=timezone.now())


def test_the_watcher_is_a_part_of_products_whose_clusters_speak(page: Client) -> None:
    assert "watcher" not in conditions(page)


def test_clusters_that_nobody_follows_are_told_with_what_helps(
    page: Client, speaking: Cluster
) -> None:
    assert conditions(page)["watcher"] == "down"
    text = page.get("/status").text
    assert "no process watches the clusters" in text
    assert "var/logs/watcher.log" in text


def test_a_cluster_that_is_followed_and_silent_is_named(page: Client, speaking: Cluster) -> None:
    with hold_leader_lease(LEASE, ttl=timedelta(minutes=1)):
        assert conditions(page)["watcher"] == "well"
        assert "watches 1 cluster" in page.get("/status").text
        Cluster.objects.update(reachable_at=timezone.now() - timedelta(minutes=2))
        assert conditions(page)["watcher"] == "degraded"
        assert "unreachable: east" in page.get("/status").text


def test_agents_are_a_part_once_a_node_has_a_token(page: Client) -> None:
    assert "agents" not in conditions(page)
    cluster = factories.cluster()
    node_token_issue(node=cluster.nodes.get(), actor=None)
    assert conditions(page)["agents"] == "well"
    assert "never connected" in page.get("/status").text
    NodeToken.objects.update(used_at=timezone.now())
    assert conditions(page)["agents"] == "well"
    NodeToken.objects.update(used_at=timezone.now() - timedelta(minutes=7))
    assert conditions(page)["agents"] == "degraded"
    shown = page.get("/status").text
    assert "0 of 1 node agent connected, last report 7 min" in shown
    assert "An agent is stale" in shown


def test_an_agent_whose_node_is_gone_is_no_trouble(page: Client) -> None:
    cluster = factories.cluster()
    node = cluster.nodes.get()
    node_token_issue(node=node, actor=None)
    NodeToken.objects.update(used_at=timezone.now() - timedelta(minutes=7))
    assert conditions(page)["agents"] == "degraded"
    inventory_record(cluster=cluster, nodes=[], isolation="", at=timezone.now())
    assert "agents" not in conditions(page)
    # One that is heard all the same is counted.
    NodeToken.objects.update(used_at=timezone.now())
    assert "1 of 1 node agent connected" in page.get("/status").text
    NodeToken.objects.update(used_at=timezone.now() - timedelta(minutes=7))
    # It is there again, and silent.
    Node.objects.update(last_seen_at=timezone.now())
    assert conditions(page)["agents"] == "degraded"
    # What nobody has asked the cluster about is not gone.
    Node.objects.update(last_seen_at=None)
    assert conditions(page)["agents"] == "degraded"


def test_an_agent_whose_cluster_was_removed_is_no_trouble(page: Client, admin: User) -> None:
    cluster = factories.cluster()
    node_token_issue(node=cluster.nodes.get(), actor=None)
    NodeToken.objects.update(used_at=timezone.now() - timedelta(minutes=7))
    assert conditions(page)["agents"] == "degraded"
    cluster_remove(
        cluster=cluster, workloads_using=workloads_using_cluster, actor=admin, at=timezone.now()
    )
    assert NodeToken.objects.get().revoked_at is None
    assert "agents" not in conditions(page)


def test_a_lost_database_is_logged_and_stops_no_controller(
    db: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def gone() -> None:
        raise OperationalError("terminating connection due to unexpected postmaster exit")

    with monkeypatch.context() as patch:
        patch.setattr(connection, "cursor", gone)
        reconcile_runs.record_reconcile_start(QUICK)
        reconcile_runs.record_reconcile_end(QUICK, seconds=0.01)

    records = [each for each in caplog.records if each.name == reconcile_runs.__name__]
    assert [getattr(each, "controller", None) for each in records] == [QUICK, QUICK]
