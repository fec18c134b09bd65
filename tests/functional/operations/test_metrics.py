"""Who may read metrics, what is exposed, and that the docs name all of it."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from pytest_django import DjangoAssertNumQueries, Settings

from apps.console.web import prometheus_metrics
from apps.fleet.models import Cluster
from apps.quotas.models import CyclePhase
from controlplane.outbox.models import OutboxMessage
from controlplane.persistence import reconcile_runs
from tests import factories
from tests.functional.operations.caches import expire

DOCS = Path(__file__).resolve().parents[3] / "docs" / "operations.md"
TOKEN = "a-token-for-prometheus"
CONTROLLER = "apps.quotas.tasks.run_cycle"


@pytest.fixture(autouse=True)
def no_local_cluster(settings: Settings) -> None:
    """This machine runs no jobs, so it reads metrics without a token."""
    settings.NINEFOLD_LOCAL_CLUSTER = False


def samples(client: Client) -> dict[str, list[Sample]]:
    expire(prometheus_metrics.PRODUCT_METRICS.families)
    answer = client.get("/metrics")
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.content.decode())
    return {family.name: list(family.samples) for family in families}


def value(found: dict[str, list[Sample]], family: str, **labels: str) -> float:
    (sample,) = [one for one in found[family] if one.labels == labels]
    return float(sample.value)


@pytest.mark.django_db
def test_jobs_are_counted_by_state(client: Client, home: Path, filled_rows: None) -> None:
    found = samples(client)
    assert value(found, "ninefold_jobs", state="running") == 1
    assert value(found, "ninefold_attempts", state="running") == 1
    assert value(found, "ninefold_claims", state="admitted") == 2
    assert value(found, "ninefold_claims", state="pending") == 1
    assert value(found, "ninefold_queue_waiting_claims", queue="default") == 1
    assert value(found, "ninefold_deployments", state="ready") == 1
    assert value(found, "ninefold_replicas", state="ready") == 1
    assert value(found, "ninefold_cards", chip="cpu", state="usable") == 2
    assert sum(sample.value for sample in found["ninefold_database_connections"]) >= 1


@pytest.fixture
def filled_rows(db: None) -> None:
    team, queue = factories.team(), factories.queue()
    own: dict[str, Any] = {"actor": factories.user(team=team), "team": team}
    cluster = factories.cluster(cards=2)
    model = factories.model_version(**own)
    work: dict[str, Any] = {
        **own,
        "queue": queue,
        "model": model,
        "dataset": factories.dataset_version(**own),
    }
    factories.running(factories.job(**work), cluster=cluster)
    deployment = factories.deployment(**own, queue=queue, model=model)
    factories.replica(deployment, cluster=cluster)
    factories.job(**work)


@pytest.mark.django_db
def test_requests_are_counted_by_the_pattern_of_their_address(client: Client, home: Path) -> None:
    for uid in ("0" * 32, "1" * 32):
        client.get(f"/api/v1/jobs/{uid}")
    client.generic("BREW", "/no-such-page")
    found = samples(client)
    labels = {"method": "GET", "route": "/api/v1/jobs/<uid>", "status": "401"}
    assert value(found, "ninefold_web_requests", **labels) >= 2
    odd = {"method": "other", "route": "unmatched", "status": "404"}
    assert value(found, "ninefold_web_requests", **odd) >= 1
    routes = {one.labels["route"] for one in found["ninefold_web_requests"]}
    assert not [route for route in routes if "0000" in route]
    counted = [
        sample.value
        for sample in found["ninefold_web_request_seconds"]
        if sample.name.endswith("_count") and sample.labels["route"] == "/api/v1/jobs/<uid>"
    ]
    assert counted[0] >= 2


@pytest.mark.django_db
def test_controllers_report_lag_and_runs(client: Client, home: Path) -> None:
    reconcile_runs.record_reconcile_start(CONTROLLER)
    reconcile_runs.record_reconcile_end(CONTROLLER, seconds=0.25, handled=3)
    reconcile_runs.record_reconcile_start(CONTROLLER)
    reconcile_runs.record_reconcile_end(CONTROLLER, seconds=0.5, error="ValueError: no")
    found = samples(client)
    assert 0 <= value(found, "ninefold_controller_lag_seconds", controller=CONTROLLER) < 60
    assert value(found, "ninefold_controller_interval_seconds", controller=CONTROLLER) == 2
    assert value(found, "ninefold_controller_runs", controller=CONTROLLER, outcome="good") == 1
    assert value(found, "ninefold_controller_runs", controller=CONTROLLER, outcome="bad") == 1
    assert value(found, "ninefold_controller_run_seconds", controller=CONTROLLER) == 0.75
    assert (
        value(found, "ninefold_controller_last_run_duration_seconds", controller=CONTROLLER) == 0.5
    )
    assert value(found, "ninefold_controller_unhealthy", controller=CONTROLLER) == 0


@pytest.mark.django_db
def test_cycles_report_the_duration_of_phases(client: Client, home: Path) -> None:
    for seconds in (0.02, 0.2, 45.0):
        CyclePhase.record_cycle(seconds={"plan": seconds})
    found = samples(client)["ninefold_cycle_seconds"]
    counts = {one.labels["le"]: one.value for one in found if one.name.endswith("_bucket")}
    assert [counts[bound] for bound in ("0.01", "0.025", "0.1", "0.25", "30.0", "+Inf")] == [
        0,
        1,
        1,
        2,
        2,
        3,
    ]
    (total,) = [one.value for one in found if one.name.endswith("_sum")]
    assert total == pytest.approx(45.22)


@pytest.mark.django_db
def test_pending_objects_are_counted(client: Client, home: Path, broker_folder: Path) -> None:
    for topic in ("claim.requested", "moon.full"):
        OutboxMessage.objects.create(topic=topic, payload={})
    (broker_folder / "1_a.beat.msg").touch()
    found = samples(client)
    assert value(found, "ninefold_outbox_messages") == 2
    assert value(found, "ninefold_outbox_unheard_messages", topic="moon.full") == 1
    assert value(found, "ninefold_outbox_oldest_seconds") >= 0
    assert value(found, "ninefold_broker_messages", queue="beat") == 1
    assert value(found, "ninefold_broker_up") == 1


@pytest.mark.django_db
def test_metrics_cost_few_queries_and_are_cached(
    client: Client,
    home: Path,
    django_assert_max_num_queries: DjangoAssertNumQueries,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    expire(prometheus_metrics.PRODUCT_METRICS.families)
    with django_assert_max_num_queries(6):
        client.get("/metrics")
    with django_assert_num_queries(0):
        client.get("/metrics")


@pytest.mark.django_db
def test_every_metric_is_in_the_docs_and_the_docs_name_no_other(
    client: Client, home: Path, filled_rows: None
) -> None:
    reconcile_runs.record_reconcile_start(CONTROLLER)
    reconcile_runs.record_reconcile_end(CONTROLLER, seconds=0.25)
    client.get("/healthz")
    expire(prometheus_metrics.PRODUCT_METRICS.families)
    text = client.get("/metrics").content.decode()
    exposed = set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))
    # Prometheus's client adds when a series began.
    exposed = {name for name in exposed if not name.endswith("_created")}
    documented = set(re.findall(r"^\| `(ninefold_\w+)[`{]", DOCS.read_text(), re.MULTILINE))
    documented = {name for name in documented if not name.startswith("ninefold_gateway_")}
    assert exposed == documented


@pytest.mark.django_db
def test_names_follow_prometheus_conventions(client: Client, home: Path, filled_rows: None) -> None:
    text = client.get("/metrics").content.decode()
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
        assert name.startswith("ninefold_")
        assert (kind == "counter") == name.endswith("_total"), name


def status(client: Client, **environ: Any) -> int:
    return client.get("/metrics", **environ).status_code


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
def test_this_machine_may_read_them_where_it_runs_no_jobs(
    client: Client, home: Path, address: str
) -> None:
    assert status(client, REMOTE_ADDR=address) == 200


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_jobs_of_the_local_cluster_may_not(
    client: Client, settings: Settings, address: str
) -> None:
    settings.NINEFOLD_LOCAL_CLUSTER, settings.NINEFOLD_METRICS_TOKEN = True, TOKEN
    assert status(client, REMOTE_ADDR=address) == 403
    assert status(client, REMOTE_ADDR=address, HTTP_AUTHORIZATION="Bearer another") == 403


@pytest.mark.parametrize("address", ["10.0.0.7", "::ffff:10.0.0.7", "2001:db8::7", "", "unix:"])
def test_others_may_not(client: Client, settings: Settings, address: str) -> None:
    settings.NINEFOLD_METRICS_TOKEN = TOKEN
    assert status(client, REMOTE_ADDR=address) == 403
    assert status(client, REMOTE_ADDR=address, HTTP_AUTHORIZATION="Bearer another") == 403
    assert status(client, REMOTE_ADDR=address, HTTP_AUTHORIZATION=f"Basic {TOKEN}") == 403


@pytest.mark.parametrize("header", ["X_FORWARDED_FOR", "FORWARDED", "X_REAL_IP", "VIA"])
def test_what_a_proxy_on_this_machine_forwards_is_not_from_this_machine(
    client: Client, header: str
) -> None:
    assert status(client, REMOTE_ADDR="127.0.0.1", **{f"HTTP_{header}": "10.0.0.7"}) == 403


def test_without_a_token_no_token_fits(client: Client, settings: Settings) -> None:
    settings.NINEFOLD_METRICS_TOKEN = ""
    assert status(client, REMOTE_ADDR="10.0.0.7", HTTP_AUTHORIZATION="Bearer ") == 403


@pytest.mark.django_db
def test_the_token_lets_anybody_read_them(client: Client, home: Path, settings: Settings) -> None:
    settings.NINEFOLD_METRICS_TOKEN = TOKEN
    for address in ("10.0.0.7", "127.0.0.1"):
        given = {"REMOTE_ADDR": address, "HTTP_AUTHORIZATION": f"Bearer {TOKEN}"}
        assert status(client, **given) == 200


@pytest.mark.django_db
def test_the_time_since_the_last_heartbeat_is_measured(client: Client, home: Path) -> None:
    seen_at = timezone.now() - timedelta(seconds=90)
    Cluster.objects.create(name="east", kind="fake", reachable_at=seen_at)
    Cluster.objects.create(name="here", kind="fake")
    found = samples(client)
    assert [one.labels for one in found["ninefold_cluster_silence_seconds"]] == [
        {"cluster": "east"}
    ]
    assert 90 <= value(found, "ninefold_cluster_silence_seconds", cluster="east") < 120
