"""Where figures come from: sources that are read, what was wrong with them, and what they cost to list."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from apps.accounts.models import AuditEntry
from apps.fleet.models import Card, Cluster, Node
from apps.monitoring.reconcilers.metric_sources import metric_sources_read
from apps.monitoring.services.metric_ingestion import readings_record
from apps.telemetry.models import CardMetrics, Source
from apps.telemetry.services.metric_batches import MetricBatchResult
from apps.telemetry.services.metric_sources import (
    metric_source_record_failure,
    metric_source_record_scrape,
)
from apps.telemetry.services.node_tokens import node_token_issue
from apps.telemetry.web.metric_source_forms import source_form_class
from controlplane.domain.common.reasons import Reason
from controlplane.domain.outbound.egress import EgressPolicy
from controlplane.domain.telemetry.metrics import CardMetricsReading, Metric
from controlplane.persistence.encryption import decrypt
from controlplane.ports.telemetry import RejectedReading, TelemetryBatch
from tests import factories
from tests.cases import for_each_case
from tests.contract.web_servers import web_server
from tests.functional.pages.conftest import logged_in
from tests.functional.pages.reading import CHINESE, single_line, text_of

_AT = "/fleet/sources"
#: Session, person, what they may, and what the lists ask however long they are.
SOURCES, AGENTS = 7, 10


@pytest.fixture(autouse=True)
def loopback_may_be_read(settings: Settings) -> None:
    settings.NINEFOLD_TELEMETRY = EgressPolicy.parse(
        allow=["127.0.0.0/8"], schemes=["http"], ports=range(1, 65536)
    )


def exporters(where: Cluster, **changes: str) -> dict[str, str]:
    return {
        "name": "dcgm-east",
        "cluster": where.uid,
        "vendor": "nvidia",
        "targets": "http://127.0.0.1:9400/metrics here-1\nhttp://127.0.0.2:9400/metrics",
        "every": "15",
        **changes,
    }


def test_a_fleet_without_sources_is_told_how_to_begin(operator: Client) -> None:
    assert "No metric sources" in text_of(operator, _AT)
    page = text_of(operator, f"{_AT}/agents")
    assert "No node agents" in page
    assert "python3 -m ninefold_runtime.agent" in page
    assert "--token-file /etc/ninefold/token" in page


def test_a_source_is_made_changed_paused_resumed_and_deleted(
    operator: Client, cluster: Cluster
) -> None:
    assert operator.get(f"{_AT}/new").status_code == 200
    response = operator.post(f"{_AT}/new?kind=exporter", exporters(cluster, token="s3cret"))
    source = Source.objects.get()
    page = f"{_AT}/{source.uid}"
    assert response.headers["Location"] == page
    assert source.options == {
        "vendor": "nvidia",
        "targets": [
            {"url": "http://127.0.0.1:9400/metrics", "node": "here-1"},
            {"url": "http://127.0.0.2:9400/metrics"},
        ],
    }
    assert "s3cret" not in text_of(operator, page)
    form = text_of(operator, f"{page}/change")
    assert "http://127.0.0.1:9400/metrics here-1" in form
    assert "s3cret" not in form
    changed = {"vendor": "nvidia", "targets": "http://127.0.0.2:9400/metrics", "every": "30"}
    operator.post(f"{page}/change", changed)
    source.refresh_from_db()
    assert (source.every, len(source.options["targets"])) == (30, 1)
    assert source.credential is not None, "an empty field keeps the token"
    assert decrypt(source.credential) == b"s3cret"
    operator.post(f"{page}/change", {**changed, "forget_token": "on"})
    source.refresh_from_db()
    assert source.credential is None
    operator.post(f"{page}/pause")
    assert "paused" in text_of(operator, _AT)
    operator.post(f"{page}/resume")
    source.refresh_from_db()
    assert source.enabled
    operator.post(f"{page}/delete")
    assert not Source.objects.exists()
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"source.create", "source.change", "source.delete"} <= actions


def test_a_prometheus_is_made_with_what_was_filled_in_only(
    operator: Client, cluster: Cluster
) -> None:
    given = {
        "name": "prom",
        "cluster": cluster.uid,
        "url": "http://127.0.0.1:9090",
        "vendor": "nvidia",
        "selector": 'job="dcgm"',
        "every": "10",
    }
    operator.post(f"{_AT}/new?kind=prometheus", given)
    assert Source.objects.get().options == {
        "url": "http://127.0.0.1:9090",
        "vendor": "nvidia",
        "selector": 'job="dcgm"',
    }
    assert "job=&quot;dcgm&quot;" in text_of(operator, f"{_AT}/{Source.objects.get().uid}")


@for_each_case(
    ("changes", "said"),
    [
        ({"name": "Not Good"}, "enter a name of up to 60 lower-case letters, digits and hyphens"),
        (
            {"targets": "http://127.0.0.1:9400/metrics a b"},
            "must contain a URL and, optionally, a node name",
        ),
        ({"targets": "ftp://127.0.0.1/metrics"}, "targets, number 1"),
        ({"every": "1"}, "greater than or equal to 5"),
        ({"token": "ключ"}, "a token must consist of ASCII characters"),
        ({"vendor": "acme"}, "acme is not one of the available choices"),
        ({"cluster": "nowhere"}, "not one of the available choices"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(
    operator: Client, cluster: Cluster, changes: dict[str, str], said: str
) -> None:
    answer = operator.post(f"{_AT}/new?kind=exporter", exporters(cluster, **changes))
    assert answer.status_code == 422
    assert said in answer.text
    (field,) = changes
    assert f'id="id_{field}_error"' in answer.text
    assert not Source.objects.exists()


def test_a_name_that_is_taken_is_refused(operator: Client, cluster: Cluster) -> None:
    operator.post(f"{_AT}/new?kind=exporter", exporters(cluster))
    answer = operator.post(f"{_AT}/new?kind=exporter", exporters(cluster))
    assert "a source named dcgm-east already exists; choose another name" in answer.text


def test_a_trial_that_reaches_nobody_says_so_and_keeps_nothing(
    operator: Client, cluster: Cluster
) -> None:
    operator.post(
        f"{_AT}/new?kind=exporter", exporters(cluster, targets="http://127.0.0.1:9/metrics here-1")
    )
    source = Source.objects.get()
    answer = operator.post(f"{_AT}/{source.uid}/try")
    assert answer.status_code == 422
    assert "Test of the metric source failed" in answer.text
    source.refresh_from_db()
    assert source.error == ""


def test_the_page_says_why_values_were_refused_and_who_is_silent(
    operator: Client, cluster: Cluster
) -> None:
    source = factories.source(
        cluster,
        options={"vendor": "nvidia", "targets": [{"url": "http://127.0.0.1:9400", "node": "n1"}]},
        refused=2,
        refusals=["utilization of 180 percent (card 3 of n1)"],
        unreachable={"n1": "the response has status 503"},
    )
    factories.card_metrics(Card.objects.all()[:3])
    CardMetrics.objects.update(source=source)
    listed = text_of(operator, _AT)
    assert "1 exporter did not respond" in listed
    assert '<td class="nf-number" data-label="Cards with metrics">3</td>' in listed
    page = text_of(operator, f"{_AT}/{source.uid}")
    assert "utilization of 180 percent (card 3 of n1)" in page
    assert "the response has status 503" in page


def test_whoever_reads_chinese_reads_in_chinese_what_was_refused_and_what_went_wrong(
    operator: Client, cluster: Cluster
) -> None:
    operator.post(
        f"{_AT}/new?kind=exporter", exporters(cluster, targets="http://127.0.0.1:9/metrics here-1")
    )
    source, at = Source.objects.get(), timezone.now()
    page = f"{_AT}/{source.uid}"
    strange = CardMetricsReading(node="here-1", index=0, at=at, metrics={Metric.UTILIZATION: 180.0})
    odd = RejectedReading(
        what="card 7",
        reason=Reason(
            "telemetry_source.sample.node_missing", "the metrics do not name the node of the card"
        ),
        count=3,
    )
    recorded = readings_record(source=source, readings=[strange], at=at, refused=[odd])
    unreachable = {
        "here-1": Reason(
            "telemetry_source.response.unexpected_status",
            "the response has status {status}",
            status=503,
        )
    }
    metric_source_record_scrape(
        source=source, at=at, recorded=recorded, batch=TelemetryBatch(unreachable=unreachable)
    )
    text = single_line(operator.get(page, headers=CHINESE).text)
    for message in (
        "3 次：指标中没有卡所在的节点（例如 &#x27;card 7&#x27;）",
        "1 次：utilization 的值超出范围（例如 &#x27;180.0&#x27;）",
        "响应状态码为 503",
    ):
        assert message in text

    metric_sources_read(at=at + timedelta(minutes=1))
    listed = single_line(operator.get(_AT, headers=CHINESE).text)
    assert (
        "所有导出器（共 1 个）均无响应；其中第一个 here-1：无法连接 127.0.0.1（127.0.0.1，端口 9）"
        in listed
    )
    assert "所有导出器（共 1 个）均无响应" in single_line(
        operator.post(f"{page}/try", headers=CHINESE).text
    )


def test_what_a_trial_was_refused_is_told_in_the_readers_language(
    operator: Client, cluster: Cluster
) -> None:
    with web_server() as server:
        server.answers["/metrics"] = (200, {}, b"up 1\n")
        url = f"http://127.0.0.1:{server.port}/metrics"
        operator.post(f"{_AT}/new?kind=exporter", exporters(cluster, targets=url))
        page = f"{_AT}/{Source.objects.get().uid}/try"
        name = url.removeprefix("http://")
        assert f"the response has no cards of this vendor ({name})" in operator.post(page).text
        text = single_line(operator.post(page, headers=CHINESE).text)
    assert f"响应中没有该厂商的卡（{name}）" in text


def test_an_exporter_without_a_node_that_did_not_answer_is_not_said_to_have_arrived(
    operator: Client, cluster: Cluster
) -> None:
    operator.post(f"{_AT}/new?kind=exporter", exporters(cluster))
    source = Source.objects.get()
    recorded, unreachable = (
        MetricBatchResult(),
        {"127.0.0.2:9400/metrics": "the response has status 503"},
    )
    metric_source_record_scrape(
        source=source,
        at=timezone.now(),
        recorded=recorded,
        batch=TelemetryBatch(unreachable=unreachable),
    )
    page = text_of(operator, f"{_AT}/{source.uid}")
    assert "the response has status 503" in page
    assert page.count('data-state="arrived"') == 1


def test_what_is_not_known_of_an_exporter_is_not_said(operator: Client, cluster: Cluster) -> None:
    operator.post(f"{_AT}/new?kind=exporter", exporters(cluster))
    source = Source.objects.get()
    at, recorded = timezone.now(), MetricBatchResult()
    metric_source_record_scrape(source=source, at=at, recorded=recorded, batch=TelemetryBatch())
    assert text_of(operator, f"{_AT}/{source.uid}").count('data-state="arrived"') == 2
    # More than are kept: whether the others are among them nobody knows.
    many = TelemetryBatch(unreachable={f"a-{number:03}": "timed out" for number in range(60)})
    metric_source_record_scrape(source=source, at=at, recorded=recorded, batch=many)
    page = text_of(operator, f"{_AT}/{source.uid}")
    assert "arrived" not in page
    assert page.count('data-state="unsaid"') == 2
    metric_source_record_scrape(source=source, at=at, recorded=recorded, batch=TelemetryBatch())
    metric_source_record_failure(source=source, error="none of 2 exporters answered")
    assert "arrived" not in text_of(operator, f"{_AT}/{source.uid}")


def test_the_options_of_a_kind_that_is_not_known_need_no_exporters(
    operator: Client, cluster: Cluster
) -> None:
    source = factories.source(cluster, kind="acme", options={"targets": ["rack-7", "rack-8"]})
    assert source.name in text_of(operator, _AT)
    assert "rack-8" in text_of(operator, f"{_AT}/{source.uid}")


def test_as_many_exporters_as_are_read_fit_the_form(operator: Client, cluster: Cluster) -> None:
    lines = (
        f"http://gpu-{number:04}.pod-17.east.datacenter.example.com:9400/metrics gpu-{number:04}"
        for number in range(5_000)
    )
    form = source_form_class("exporter")(
        {"vendor": "nvidia", "every": "10", "targets": "\r\n".join(lines)}
    )
    assert form.is_valid(), form.errors
    assert len(form.chosen_options["targets"]) == 5_000


def test_a_token_that_no_key_decrypts_is_a_refusal_and_can_be_replaced(
    operator: Client, cluster: Cluster
) -> None:
    operator.post(f"{_AT}/new?kind=exporter", exporters(cluster, token="s3cret"))
    Source.objects.update(credential=b"sealed by a key that is gone")
    source = Source.objects.get()
    page = f"{_AT}/{source.uid}"
    for answer in (
        operator.post(f"{page}/try"),
        operator.post(f"{page}/change", exporters(cluster)),
    ):
        assert answer.status_code == 422
        assert "no key in NINEFOLD_ENCRYPTION_KEY can decrypt this value" in answer.text
    assert operator.post(f"{page}/change", exporters(cluster, token="new")).status_code == 302
    source.refresh_from_db()
    assert decrypt(source.credential or b"") == b"new"


def test_the_lists_cost_the_same_however_long_they_are(
    operator: Client, cluster: Cluster, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    node = Node.objects.get()
    for number in range(8):
        factories.source(cluster, name=f"exporters-{number}")
        node_token_issue(node=node, actor=None)
    operator.get(_AT)
    with django_assert_max_num_queries(SOURCES):
        operator.get(_AT)
    with django_assert_max_num_queries(AGENTS):
        operator.get(f"{_AT}/agents")


def test_who_does_not_operate_the_fleet_sees_no_addresses(cluster: Cluster) -> None:
    viewer = logged_in("vera", team=factories.team("ads"))
    source = factories.source(cluster)
    for path in ("", "/new", "/agents", "/tokens/new", f"/{source.uid}"):
        assert viewer.get(f"{_AT}{path}").status_code == 403, path
    assert f'href="{_AT}"' not in viewer.get("/fleet").text
