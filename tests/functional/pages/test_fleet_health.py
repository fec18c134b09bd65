"""The fleet's overview, its faults and its cards: what they say first, to whom, and what can be done there."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apps.accounts.models import AuditEntry
from apps.fleet.models import Card, Cluster, Node
from apps.monitoring.models import Fault, Isolation
from apps.monitoring.selectors.fleet_counts import nodes_with_card_counts
from controlplane.domain.health.faults import FaultLevel, SignalOrigin
from tests import factories
from tests.functional.pages.reading import CHINESE

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster() -> Cluster:
    found = factories.cluster(cards=4)
    Card.objects.update(chip="nvidia-h800")
    return found


def card(index: int = 0) -> Card:
    return Card.objects.select_related("node").get(index=index)


def single_line(text: str) -> str:
    return " ".join(text.split())


def test_old_figures_are_said_to_be_old_and_not_shown_as_idle(
    viewer: Client, cluster: Cluster
) -> None:
    before = single_line(viewer.get("/fleet").text)
    assert "no current metrics" in before
    assert "not measured" in before
    factories.card_metrics([card(0)], at=timezone.now() - timedelta(minutes=5))
    factories.source(cluster, read_at=timezone.now() - timedelta(minutes=5))
    old = single_line(viewer.get("/fleet").text)
    assert "metrics are stale" in old
    assert "Metrics of here are stale: source exporters has not been read recently." in old


def test_busy_counts_what_is_measured_now(viewer: Client, cluster: Cluster) -> None:
    factories.card_metrics([card(0)], utilization=20.0)
    factories.card_metrics([card(1)], utilization=19.0)
    factories.card_metrics([card(2)], utilization=90.0, at=timezone.now() - timedelta(minutes=5))
    assert "utilization of 20 % or more; cards with metrics: 2" in single_line(
        viewer.get("/fleet").text
    )


def test_a_card_is_usable_isolated_unknown_or_takes_no_new_work(
    viewer: Client, cluster: Cluster
) -> None:
    Card.objects.filter(index=0).update(state="isolated")
    Card.objects.filter(index=1).update(state="unknown")
    Node.objects.update(cordoned=True)
    text = single_line(viewer.get("/fleet").text)
    for label, count in (("Available", 0), ("Isolated", 1), ("Unknown", 1), ("Cordoned", 2)):
        assert f'data-label="{label}">{count}</td>' in text


def test_cards_out_of_use_without_a_fault_are_said_to_be_so_on_both_pages(
    viewer: Client, cluster: Cluster
) -> None:
    """A cluster may report a card as not healthy, and a person may cordon a node: neither is a fault."""
    for path in ("/fleet", "/fleet/faults"):
        assert "All cards are healthy" in single_line(viewer.get(path).text)
    Card.objects.filter(index=0).update(state="unknown")
    Node.objects.update(cordoned=True)
    for path in ("/fleet", "/fleet/faults"):
        text = single_line(viewer.get(path).text)
        assert "All cards are healthy" not in text
        assert "No open faults" in text
        assert "4 of 4 cards are unavailable: 1 unknown, 3 cordoned." in text


def test_free_cards_of_a_cordoned_node_are_not_drawn_as_free(
    viewer: Client, cluster: Cluster
) -> None:
    Node.objects.update(cordoned=True)
    text = viewer.get("/fleet").text
    assert text.count('class="nf-cell" data-use="no_new_work"') == 4
    (counted,) = nodes_with_card_counts()
    assert (counted.free, counted.no_new_work) == (0, 4)


def test_what_is_broken_comes_the_worst_first_until_somebody_has_read_it(
    viewer: Client, cluster: Cluster
) -> None:
    factories.fault(card(0), code="43", level=FaultLevel.RESTART_JOB)
    worst = factories.fault(card(1), code="79")
    factories.fault(card(2), code="note-1", level=FaultLevel.NOTE)
    text = viewer.get("/fleet").text
    assert text.index(">79<") < text.index(">43<")
    assert "note-1" not in text
    Fault.objects.filter(pk=worst.pk).update(acknowledged_at=timezone.now())
    assert ">79<" not in viewer.get("/fleet").text


def test_faults_are_found_by_state_level_place_and_code(viewer: Client, cluster: Cluster) -> None:
    standing = factories.fault(card(0), code="79")
    over = factories.fault(card(1), code="48", level=FaultLevel.RESET_NOW)
    Fault.objects.filter(pk=over.pk).update(ended_at=timezone.now())
    for query, seen in (
        ("", {standing.code}),
        ("?state=over", {over.code}),
        ("?state=all&level=5", {over.code}),
        ("?state=all&text=here-1", {standing.code, over.code}),
        ("?text=79", {standing.code}),
        ("?chip=nvidia-h800&cluster=here&origin=exporter", {standing.code}),
        ("?state=acknowledged", set()),
    ):
        text = viewer.get(f"/fleet/faults{query}").text
        assert {code for code in ("79", "48") if f"<code>{code}</code>" in text} == seen, query


def test_faults_have_the_vendors_name_in_every_language(viewer: Client, cluster: Cluster) -> None:
    factories.fault(card(0), code="31", level=FaultLevel.RESTART_JOB)
    factories.fault(card(1), code="80CB8009", vendor="ascend", level=FaultLevel.RESTART_REQUEST)
    unknown = factories.fault(card(2), code="9999")
    english = viewer.get("/fleet/faults").text
    assert "Xid 31: GPU memory page fault" in english
    assert "AIV bus access error" in english
    chinese = viewer.get("/fleet/faults", headers=CHINESE).text
    assert "Xid 31：GPU memory page fault（显存页错误）" in chinese
    assert "AIV 总线访问错误" in chinese
    assert unknown.code in chinese
    assert "保持隔离，并检测或更换硬件。" in chinese


def test_a_node_itself_can_be_at_fault(viewer: Client, cluster: Cluster) -> None:
    node = Node.objects.get()
    factories.fault(node, code="node-silent", vendor="", origin=SignalOrigin.SILENCE)
    text = viewer.get("/fleet/faults").text
    assert "No heartbeat from the node." in text
    assert f'href="/fleet/clusters/{cluster.uid}/nodes/here-1"' in text
    assert "node fault" in viewer.get(f"/fleet/cards/{card(0).uid}").text


def test_what_logs_of_jobs_say_is_for_operators(
    viewer: Client, operator: Client, cluster: Cluster
) -> None:
    factories.fault(
        card(0), code="nccl-timeout", vendor="", origin=SignalOrigin.JOB, message="rank 3 of x"
    )
    assert "rank 3 of x" not in viewer.get("/fleet/faults").text
    assert "rank 3 of x" in operator.get("/fleet/faults").text


def test_operators_acknowledge_many_at_once_with_a_note(operator: Client, cluster: Cluster) -> None:
    uids = [factories.fault(card(index)).uid for index in (0, 1)]
    sent = {"uid": uids, "note_acknowledge": "cable is ordered", "note_isolate": ""}
    text = operator.post("/fleet/faults/acknowledge", sent, follow=True).text
    assert "2 faults acknowledged." in text
    assert "otto: cable is ordered" in text
    assert Fault.objects.filter(acknowledged_by_name="otto").count() == 2


def test_operators_isolate_and_give_back_from_the_list(operator: Client, cluster: Cluster) -> None:
    fault = factories.fault(card(0))
    refused = operator.post("/fleet/faults/isolate", {"uid": fault.uid}, follow=True).text
    assert "enter a reason; it is stored in the history" in refused
    assert not Isolation.objects.exists()
    operator.post("/fleet/faults/isolate", {"uid": fault.uid, "note_isolate": "fell off the bus"})
    assert card(0).state == "isolated"
    sent = {"uid": fault.uid, "note_release": "reseated"}
    text = operator.post("/fleet/faults/release", sent, follow=True).text
    assert "1 card or node returned to service" in text
    assert card(0).state == "usable"
    assert AuditEntry.objects.filter(action__startswith="isolation.").count() == 2


def test_who_does_not_operate_the_fleet_changes_nothing(viewer: Client, cluster: Cluster) -> None:
    fault = factories.fault(card(0))
    assert 'name="uid"' not in viewer.get("/fleet/faults").text
    sent = {"uid": fault.uid, "note_isolate": "why not", "reason": "why not"}
    for address in (
        "/fleet/faults/acknowledge",
        "/fleet/faults/isolate",
        "/fleet/faults/release",
        f"/fleet/cards/{card(0).uid}/isolate",
        f"/fleet/cards/{card(0).uid}/release",
        f"/fleet/cards/{card(0).uid}/test",
    ):
        assert viewer.post(address, sent).status_code == 403, address
    assert card(0).state == "usable"


def test_a_card_goes_out_of_use_and_comes_back_on_its_page(
    operator: Client, viewer: Client, cluster: Cluster
) -> None:
    address = f"/fleet/cards/{card(1).uid}"
    assert "Isolate" not in viewer.get(address).text
    assert "Isolate" in operator.get(address).text
    operator.post(f"{address}/isolate", {"reason": "smells of smoke"})
    text = operator.get(address).text
    assert "smells of smoke" in text
    assert "isolated by otto" in text
    assert "Return to service" in text
    assert "Burn-in scheduled" in operator.post(f"{address}/test", follow=True).text
    operator.post(f"{address}/release", {"reason": "fan replaced"})
    assert card(1).state == "usable"
    past = single_line(operator.get(f"{address}?tab=history").text)
    assert past.index("fan replaced") < past.index("smells of smoke")


def test_where_a_plug_in_chooses_the_card_its_page_says_that_the_node_goes(
    operator: Client, cluster: Cluster
) -> None:
    Cluster.objects.update(binding=Cluster.BindingMode.NODE)
    address = f"/fleet/cards/{card(1).uid}"
    assert "The whole node is isolated" in operator.get(address).text
    answer = operator.post(f"{address}/isolate", {"reason": "smells of smoke"}, follow=True).text
    assert "Node isolated. Running workloads save a checkpoint and stop." in answer
    assert "smells of smoke; the whole node is isolated" in answer
    assert set(Card.objects.values_list("state", flat=True)) == {"isolated"}


def test_a_node_goes_out_of_use_as_a_whole(operator: Client, cluster: Cluster) -> None:
    address = f"/fleet/clusters/{cluster.uid}/nodes/here-1"
    operator.post(f"{address}/isolate", {"reason": "power supply"})
    assert set(Card.objects.values_list("state", flat=True)) == {"isolated"}
    assert "power supply" in operator.get(address).text
    assert "The whole node is isolated" in operator.get(f"/fleet/cards/{card(2).uid}").text
    operator.post(f"{address}/release", {"reason": "replaced"})
    assert set(Card.objects.values_list("state", flat=True)) == {"usable"}


def test_as_many_faults_as_there_may_be_cost_as_few_queries(
    operator: Client, cluster: Cluster, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(30):
        factories.fault(card(number % 4), code=f"code-{number}")
    for address in ("/fleet/faults", f"/fleet/cards/{card(0).uid}?tab=faults", "/fleet"):
        operator.get(address)
        with django_assert_max_num_queries(15):
            assert operator.get(address).status_code == 200
