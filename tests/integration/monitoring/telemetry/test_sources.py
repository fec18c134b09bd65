"""Sources are read in their turn, by one worker each, whatever becomes of the others."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.models import AuditEntry, User
from apps.accounts.selectors import PermissionRefused
from apps.fleet.models import Cluster
from apps.monitoring.models import Fault
from apps.monitoring.reconcilers.metric_sources import metric_sources_read
from apps.monitoring.services.metric_ingestion import metric_source_delete
from apps.telemetry.models import CardMetrics, Source
from apps.telemetry.selectors import due_metric_sources, metric_sources_visible
from apps.telemetry.services.metric_sources import (
    MetricSourceRefused,
    metric_source_change,
    metric_source_create,
    metric_source_test,
)
from controlplane.domain.common.permissions import TeamRole
from controlplane.domain.outbound.egress import EgressPolicy
from controlplane.persistence.leases import lease_rows
from tests import factories
from tests.contract.web_servers import WebServer, web_server
from tests.integration.monitoring.telemetry.metric_scenarios import (
    cluster_of,
    metrics_of,
    source_of,
)

pytestmark = pytest.mark.django_db
EXPOSITIONS = Path(__file__).parents[3] / "unit" / "chips" / "expositions"


@pytest.fixture
def server(settings: Settings) -> Iterator[WebServer]:
    settings.NINEFOLD_TELEMETRY = EgressPolicy.parse(
        allow=["127.0.0.0/8"], schemes=["http"], ports=range(1, 65536)
    )
    with web_server() as running:
        for vendor in ("nvidia", "ascend"):
            text = (EXPOSITIONS / f"{vendor}.txt").read_bytes()
            running.answers[f"/{vendor}"] = (200, {}, text)
        yield running


@pytest.fixture
def operator(db: None) -> User:
    return factories.user("olga", team=factories.team(), role=TeamRole.VIEWER, operator=True)


def targets(server: WebServer, path: str, *nodes: str) -> list[dict[str, str]]:
    url = f"http://127.0.0.1:{server.port}{path}"
    return [{"url": f"{url}?{node}", "node": node} for node in nodes] if nodes else [{"url": url}]


def options(server: WebServer, vendor: str = "nvidia", *nodes: str) -> dict[str, object]:
    return {"vendor": vendor, "targets": targets(server, f"/{vendor}", *nodes)}


def test_dcgm_and_npu_exporters_become_figures_and_faults_of_their_nodes(
    server: WebServer, operator: User
) -> None:
    gpus, npus = cluster_of(name="gpus"), cluster_of(name="npus")
    make: dict[str, Any] = {"actor": operator, "kind": "exporter"}
    metric_source_create(name="dcgm", cluster=gpus, options=options(server), **make)
    metric_source_create(
        name="npu",
        cluster=npus,
        options={"vendor": "ascend", "targets": [{**targets(server, "/ascend")[0], "node": "n0"}]},
        **make,
    )

    assert metric_sources_read(at=timezone.now()) == 2

    gpu = CardMetrics.objects.get(card__node__cluster=gpus, card__node__name="n1", card__index=1)
    npu = CardMetrics.objects.get(card__node__cluster=npus, card__node__name="n0", card__index=1)
    assert (gpu.utilization, gpu.serial) == (97, "GPU-1b")
    assert (npu.utilization, npu.serial, npu.health) == (88, "D1", 0)
    faults = Fault.objects.values_list("card__node__cluster__name", "card__index", "code", "level")
    assert set(faults) == {
        ("gpus", 1, "79", 6),
        ("npus", 1, "80818C00", 6),
        ("npus", 1, "80E18402", 6),
    }
    for source in Source.objects.all():
        assert (source.error, source.readings, source.refused) == ("", 2, 0)
        assert source.read_at is not None


def test_a_dead_source_and_a_dead_exporter_spoil_no_other(server: WebServer) -> None:
    cluster = cluster_of()
    good = source_of(
        cluster,
        options={
            "vendor": "nvidia",
            "targets": [
                *targets(server, "/nvidia"),
                {"url": "http://127.0.0.1:9/metrics", "node": "n0"},
            ],
        },
    )
    dead = source_of(
        cluster,
        name="dead",
        kind="prometheus",
        options={"vendor": "nvidia", "url": "http://127.0.0.1:9"},
    )
    unfit = source_of(cluster, name="unfit", kind="prometheus", options={"color": "red"})
    none = source_of(cluster, name="none", kind="carrier-pigeon")

    assert metric_sources_read(at=timezone.now()) == 1

    for source in (good, dead, unfit, none):
        source.refresh_from_db()
    assert (good.error, list(good.unreachable)) == ("", ["n0"])
    assert "cannot be reached" in good.unreachable["n0"]
    assert "cannot be reached" in dead.error
    assert "color is not an option here" in unfit.error
    assert "carrier-pigeon" in none.error
    assert metrics_of("n1", 1).utilization == 97


def test_a_source_is_read_when_its_turn_comes_and_by_one_worker(server: WebServer) -> None:
    source = source_of(cluster_of(), every=10, options=options(server))
    paused = source_of(source.cluster, name="paused", enabled=False)
    source_of(source.cluster, name="pushed", kind="push")
    at = timezone.now()
    assert due_metric_sources(at=at) == [source.pk]

    lease_rows(Source.objects.filter(pk=source.pk), limit=1, ttl=timedelta(minutes=1))
    assert metric_sources_read(at=at) == 0
    Source.objects.update(leased_until=None)

    assert metric_sources_read(at=at) == 1
    assert due_metric_sources(at=at + timedelta(seconds=9)) == []
    assert due_metric_sources(at=at + timedelta(seconds=10)) == [source.pk]
    paused.refresh_from_db()
    assert paused.tried_at is None


def test_a_token_is_kept_encrypted_and_shown_to_the_exporter_only(
    server: WebServer, operator: User
) -> None:
    source = metric_source_create(
        actor=operator,
        name="dcgm",
        cluster=cluster_of(),
        kind="exporter",
        options=options(server),
        token="s3cret-t0ken",
    )
    metric_sources_read(at=timezone.now())
    assert server.requests[0].headers["authorization"] == "Bearer s3cret-t0ken"
    assert b"s3cret" not in bytes(source.credential or b"")
    assert "s3cret" not in str(list(AuditEntry.objects.values()))

    metric_source_change(source=source, actor=operator, token="")
    assert source.credential is None


def test_trying_a_source_keeps_nothing_and_names_strangers(
    server: WebServer, operator: User
) -> None:
    cluster = cluster_of(nodes=1)
    source = source_of(cluster, options=options(server))

    trial = metric_source_test(source=source, actor=operator)

    assert (trial.cards, trial.nodes, trial.strangers) == (2, ("n1",), ("n1",))
    assert CardMetrics.objects.count() == 0

    source.options = {"vendor": "nvidia", "targets": [{"url": "http://127.0.0.1:9/m"}]}
    with pytest.raises(
        MetricSourceRefused,
        match=r"none of the exporters \(1\) responded; the first, 127.0.0.1:9/m",
    ):
        metric_source_test(source=source, actor=operator)


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"name": "Not A Name"}, "name", "lower-case letters"),
        ({"kind": "fake"}, "kind", "choose from exporter, prometheus"),
        ({"every": 1}, "every", "5 to 3600 seconds"),
        ({"token": "né"}, "token", "ASCII"),
        (
            {"options": {"vendor": "nvidia", "targets": []}},
            "options.targets",
            "1 to 5000 exporters",
        ),
        ({"options": {"outbound": 1}}, "options.outbound", "outbound is not an option"),
        ({"options": {"vendor": "x", "other": 1}}, "options.other", "other is not an option here"),
    ],
)
def test_a_source_that_cannot_work_is_refused_with_the_field(
    server: WebServer, operator: User, changes: dict[str, object], field: str, message: str
) -> None:
    given = {
        "name": "dcgm",
        "cluster": cluster_of(),
        "kind": "exporter",
        "options": options(server),
        **changes,
    }
    with pytest.raises(MetricSourceRefused, match=message) as refused:
        metric_source_create(actor=operator, **given)  # type: ignore[arg-type]
    assert refused.value.field == field


def test_a_source_of_agents_is_not_paused(operator: User) -> None:
    source = source_of(cluster_of(), kind="push")
    with pytest.raises(MetricSourceRefused, match="cannot be paused") as refused:
        metric_source_change(source=source, actor=operator, enabled=False)
    assert refused.value.field == "enabled"
    metric_source_change(source=source, actor=operator, every=30, enabled=True)
    assert (source.every, source.enabled) == (30, True)


def test_only_operators_see_and_change_sources_and_it_is_audited(
    server: WebServer, operator: User
) -> None:
    cluster: Cluster = cluster_of()
    other = factories.user("eve", team=factories.team("search"))
    make = {"name": "dcgm", "cluster": cluster, "kind": "exporter", "options": options(server)}
    with pytest.raises(PermissionRefused):
        metric_source_create(actor=other, **make)  # type: ignore[arg-type]

    source = metric_source_create(actor=operator, **make)  # type: ignore[arg-type]
    metric_source_change(source=source, actor=operator, every=30, enabled=False)
    assert list(metric_sources_visible(other)) == []
    assert list(metric_sources_visible(operator)) == [source]
    metric_source_delete(source=source, actor=operator, at=timezone.now())
    actions = AuditEntry.objects.filter(action__startswith="source.").order_by("id")
    assert [entry.action for entry in actions] == [
        "source.create",
        "source.change",
        "source.delete",
    ]


def test_what_was_measured_while_the_source_was_read_is_not_from_the_future(
    server: WebServer,
) -> None:
    source_of(cluster_of(), options=options(server))
    began = datetime.now(UTC)
    metric_sources_read(at=began)
    row = metrics_of("n1", 1)
    assert began <= row.at <= row.received_at <= datetime.now(UTC)
