"""An agent sends figures of its node, and of no other: what is taken, refused and told to wait."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import OperationalError
from django.test import Client
from django.utils import timezone
from psycopg.errors import LockNotAvailable

from apps.fleet.models import Node
from apps.fleet.services import inventory_record
from apps.monitoring.api import metric_ingestion as metric_ingestion_api
from apps.monitoring.models import Decision, Fault
from apps.monitoring.services import metric_ingestion
from apps.monitoring.services.metric_ingestion import agent_token_revoke
from apps.telemetry.models import CardHistory, CardMetrics, NodeToken, Source
from apps.telemetry.services.metric_batches import card_index_invalidate
from apps.telemetry.services.node_tokens import node_token_issue
from controlplane.domain.common.permissions import TeamRole
from controlplane.domain.common.resources import Resources
from controlplane.domain.common.topology import Geometry, choose_cards
from controlplane.domain.health.faults import SignalOrigin
from controlplane.ports.adapter_registry import geometries_on_node
from controlplane.ports.clusters import ObservedCard, ObservedNode
from tests import factories
from tests.cases import for_each_case
from tests.functional.api.telemetry.batches import PUSH, send, text

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("nothing_counted")]


def test_figures_come_in_and_the_token_remembers_the_batch(token: str) -> None:
    answer = send(token, text(), sequence=7)

    assert answer.status_code == 200, answer.content
    assert answer.json() == {
        "sequence": 7,
        "taken": True,
        "readings": 1,
        "refused": 0,
        "refusals": [],
    }
    row = CardMetrics.objects.get()
    assert (row.card.node.name, row.card.index, row.utilization) == ("n0", 1, 93)
    stored = NodeToken.objects.get()
    assert (stored.sequence, stored.agent["name"]) == (7, "ninefold-agent/1.0")
    assert stored.used_at is not None
    source = Source.objects.get()
    assert (source.kind, source.name, source.readings) == ("push", "east-agents", 1)
    assert source.read_at is not None


def test_a_source_that_was_deleted_is_made_again_with_the_next_batch(token: str) -> None:
    send(token, text(), sequence=1)
    send(token, text(), sequence=2)
    Source.objects.all().delete()

    answer = send(token, text(), sequence=3)

    assert answer.json()["taken"] is True
    assert CardMetrics.objects.get().source == Source.objects.get()


def test_a_batch_asks_the_database_little(
    token: str,
    node: Node,
    django_assert_max_num_queries: Callable[[int], AbstractContextManager[object]],
) -> None:
    send(token, text(), sequence=1)
    card_index_invalidate(node.cluster_id)
    # Whose it is, that it is taken, its figures in a savepoint of their own, and which faults stood: four. Two for
    # the cluster's cards, which are asked for seldom, and two pairs of savepoints, of which a test makes one.
    with django_assert_max_num_queries(10):
        assert send(token, text(), sequence=4).json()["taken"] is True
    # One that comes behind is looked for twice and bounds its waiting; which faults stood is not asked.
    with django_assert_max_num_queries(9):
        assert send(token, text(), sequence=3).json()["taken"] is True


def test_a_batch_that_is_held_up_is_sent_again_as_it_is_told(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def held_up(**_: object) -> None:
        raise OperationalError from LockNotAvailable()

    monkeypatch.setattr(metric_ingestion, "_record_metric_push", held_up)
    answer = send(token, text())
    assert (answer.status_code, answer.json()["code"]) == (503, "push-busy")
    assert int(answer.headers["Retry-After"]) > 0


def test_a_token_speaks_for_no_other_node(token: str) -> None:
    stolen = send(token, text(node="n1"))
    assert stolen.status_code == 403
    assert stolen.json()["code"] == "another-node"
    assert NodeToken.objects.get().sequence == 0

    mixed = send(token, text(node="n1") + text(node="n0"))
    assert (mixed.status_code, mixed.json()["readings"], mixed.json()["refused"]) == (200, 1, 1)
    assert mixed.json()["refusals"] == ["1× the sample belongs to another node (for example 'n1')"]
    assert not CardMetrics.objects.filter(card__node__name="n1").exists()


@for_each_case("bad", ["", "nft-unknown", "né", "x" * 5000])
def test_an_unknown_token_is_refused(token: str, bad: str) -> None:
    answer = send(bad, text())
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_revoked_token_and_one_of_a_node_that_is_gone_are_refused(token: str, node: Node) -> None:
    NodeToken.objects.update(revoked_at=datetime.now(UTC))
    assert send(token, text()).status_code == 401
    NodeToken.objects.update(revoked_at=None)
    Node.objects.filter(pk=node.pk).update(removed_at=datetime.now(UTC))
    assert send(token, text()).status_code == 401


def test_who_guesses_tokens_is_told_to_wait_and_a_good_token_is_not_held_up(token: str) -> None:
    answers = [
        send("nft-guess", text()).status_code for _ in range(metric_ingestion_api.MOST_WRONG + 2)
    ]
    assert (answers[0], answers[-1]) == (401, 429)
    assert send(token, text()).status_code == 200


def test_too_many_batches_are_told_to_wait(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metric_ingestion_api, "MOST_A_MINUTE", 3)
    answers = [send(token, "", sequence=number + 1) for number in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert int(answers[-1].headers["Retry-After"]) > 0


def test_a_batch_that_was_told_to_wait_is_taken_later(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metric_ingestion_api, "MOST_A_MINUTE", 2)
    answers = [send(token, text(), sequence=number) for number in (4, 3, 2, 5)]
    assert [answer.status_code for answer in answers] == [200, 200, 429, 429]
    cache.clear()
    assert [send(token, text(), sequence=number).json()["taken"] for number in (5, 2)] == [
        True,
        True,
    ]


def test_a_batch_that_is_too_old_is_refused_by_a_name_of_its_own_and_one_ahead_is_not(
    token: str,
) -> None:
    now = datetime.now(UTC)
    old = send(token, text(), at=(now - timedelta(days=1, minutes=1)).isoformat()).json()
    assert old["code"] == "push-outdated"
    assert "is more than a day behind" in old["detail"]
    ahead = send(token, text(), at=(now + timedelta(minutes=2)).isoformat()).json()
    assert ahead["code"] == "push-refused"
    assert "is more than a minute ahead of" in ahead["detail"]
    assert not CardHistory.objects.exists()


def test_a_packed_text_is_unpacked_within_a_bound(token: str) -> None:
    packed = gzip.compress(text().encode())
    assert send(token, packed, Content_Encoding="gzip").json()["readings"] == 1

    bomb = gzip.compress(b"# " + b"x" * (metric_ingestion_api.MAX_TEXT_SIZE + 1))
    assert len(bomb) < 100_000
    assert send(token, bomb, sequence=2, Content_Encoding="gzip").status_code == 413
    assert (
        send(token, b"x" * (metric_ingestion_api.LARGEST_BODY + 1), sequence=2).status_code == 413
    )


@for_each_case(
    ("changes", "status", "field"),
    [
        ({"sequence": 0}, 400, "X-Ninefold-Sequence"),
        ({"sequence": -1}, 400, "X-Ninefold-Sequence"),
        ({"sequence": 2**63}, 400, "X-Ninefold-Sequence"),
        ({"sequence": "1e3"}, 400, "X-Ninefold-Sequence"),
        ({"at": "2026-03-01T12:00:00"}, 400, "X-Ninefold-At"),
        ({"at": "yesterday"}, 400, "X-Ninefold-At"),
        ({"at": "2020-03-01T12:00:00Z"}, 400, "X-Ninefold-At"),
        ({"at": "2126-03-01T12:00:00Z"}, 400, "X-Ninefold-At"),
        ({"vendor": ""}, 400, "X-Ninefold-Vendor"),
        ({"vendor": "acme"}, 400, "X-Ninefold-Vendor"),
        ({"X_Ninefold_Agent": "x" * 300}, 400, "X-Ninefold-Agent"),
        ({"body": "<html>\n"}, 400, "body"),
        ({"body": b"\xff\xfe"}, 400, None),
        ({"body": b"no gzip", "Content_Encoding": "gzip"}, 400, None),
        # Without the hour in it: every worker has to find the same tests.
        ({"body": gzip.compress(b"x" * 100, mtime=0)[:-9], "Content_Encoding": "gzip"}, 400, None),
        ({"Content_Encoding": "br"}, 415, None),
        ({"content_type": "application/json"}, 415, None),
    ],
)
def test_what_is_wrong_with_a_batch_is_said_and_nothing_is_kept(
    token: str, changes: dict[str, Any], status: int, field: str | None
) -> None:
    body = changes.pop("body", text()) if "body" in changes else text()
    answer = send(token, body, **changes)
    assert answer.status_code == status, answer.content
    if field:
        assert answer.json()["errors"][0]["field"] == field
    assert CardMetrics.objects.count() == 0
    assert NodeToken.objects.get().sequence == 0


def test_a_million_labels_are_no_more_than_a_refusal(token: str) -> None:
    labels = ",".join(f'l{number}="x"' for number in range(200_000))
    answer = send(token, f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} 1\n")
    assert answer.status_code == 400

    cards = "".join(f'DCGM_FI_DEV_GPU_UTIL{{gpu="{number}"}} 1\n' for number in range(100_000))
    answer = send(token, cards)
    assert (answer.status_code, answer.json()["readings"]) == (200, 2)
    assert answer.json()["refused"] == 99_998


def test_a_tool_that_does_not_answer_is_a_fault_of_the_node_until_it_does(token: str) -> None:
    for number, (printed, stands) in enumerate(((0, True), (0, True), (1, False)), start=1):
        send(token, f"ninefold_agent_reader_ok {printed}\n", sequence=number)
        standing = Fault.objects.filter(ended_at=None, code="agent-reader-silent", card=None)
        assert standing.exists() is stands
    assert Fault.objects.count() == 1


def test_codes_of_an_agent_become_faults_and_end(token: str) -> None:
    send(token, text(fault=79), sequence=1)
    assert Fault.objects.get(ended_at=None).code == "79"
    send(token, text(), sequence=2)
    assert not Fault.objects.filter(ended_at=None).exists()


def test_what_an_agent_said_is_over_with_the_last_token_of_its_node(token: str, node: Node) -> None:
    operator = factories.user("olga", team=factories.team(), role=TeamRole.VIEWER, operator=True)
    second, other = node_token_issue(node=node, actor=None), Node.objects.get(name="n1")
    send(token, text(fault=79) + "ninefold_agent_reader_ok 0\n")
    send(node_token_issue(node=other, actor=None), text(node="n1", fault=79))
    assert Fault.objects.filter(node=node, ended_at=None).count() == 2
    at = timezone.now()
    condition = Fault.objects.create(
        node=node,
        origin=SignalOrigin.CONDITION,
        code="Ready",
        level=6,
        began_at=at,
        reported_at=at,
        noticed_at=at,
    )

    agent_token_revoke(
        token=NodeToken.objects.filter(node=node).earliest("id"), actor=operator, at=at
    )
    assert Fault.objects.filter(node=node, ended_at=None).count() == 3, "another token is good"
    agent_token_revoke(
        token=NodeToken.objects.filter(node=node).latest("id"), actor=operator, at=at
    )

    assert send(second, text(fault=79), sequence=2).status_code == 401
    assert Fault.objects.filter(node=node, ended_at=None).get() == condition
    assert Fault.objects.filter(node=other, ended_at=None).get().code == "79"
    assert set(Decision.objects.values_list("fault__code", "reason", "actor_name")) == {
        (code, "the last token of node n0 was revoked; no other source reports this fault", "olga")
        for code in ("79", "agent-reader-silent")
    }


def test_the_address_takes_posts_only(token: str) -> None:
    answer = Client().get(PUSH, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 405


def located(*, numa_of: Callable[[int], int]) -> str:
    """What an agent sends of a node with four cards, each two of which share a switch with an adapter."""
    return text() + "".join(
        f'ninefold_agent_card_info{{card="{index}",pci_address="0000:{index:02x}:00.0",'
        f'numa_node="{numa_of(index)}",nics_same_switch="mlx5_{index % 2}"}} 1\n'
        for index in range(4)
    )


def chosen(node: Node, count: int) -> tuple[int, ...] | None:
    """What placement gives of the node's four cards, after its cluster was looked at."""
    seen = ObservedNode(
        name=node.name,
        cards=tuple(ObservedCard(index=index, chip="nvidia-l40s") for index in range(4)),
        capacity=Resources(),
        labels=node.cluster.options.get("labels"),
    )
    inventory_record(cluster=node.cluster, nodes=[seen], isolation="", at=timezone.now())
    node.refresh_from_db()
    geometry = geometries_on_node(node.labels, ["nvidia-l40s"])
    return choose_cards(range(4), count, geometry.get("nvidia-l40s", Geometry()))


def test_placement_follows_where_the_agent_says_that_cards_are_attached(
    token: str, node: Node
) -> None:
    assert chosen(node, 2) == (0, 1)

    assert send(token, located(numa_of=lambda index: index // 2)).status_code == 200
    node.refresh_from_db()
    assert node.locality["2"] == {
        "pci_address": "0000:02:00.0",
        "numa_node": 1,
        "nics_same_switch": ["mlx5_0"],
        "nics_same_numa": [],
    }
    assert chosen(node, 2) == (0, 1)

    # Adapters decide where the NUMA node does not, and a new report replaces the old one.
    send(token, located(numa_of=lambda index: 0), sequence=2)
    assert chosen(node, 2) == (0, 2)

    # A label of the node overrides what its agent reads.
    node.cluster.options = {"labels": {"ninefold.io/nics": "0.3_1.2"}}
    assert chosen(node, 2) == (0, 3)


def test_a_card_info_that_cannot_be_changes_nothing(token: str, node: Node) -> None:
    wrong = 'ninefold_agent_card_info{card="0",pci_address="here",numa_node="0"} 1\n'
    assert send(token, text() + wrong).status_code == 200

    node.refresh_from_db()
    assert node.locality == {}


def test_a_batch_that_comes_behind_does_not_say_where_cards_are_attached(
    token: str, node: Node
) -> None:
    send(token, text(), sequence=1)
    send(token, text(), sequence=3)
    send(token, located(numa_of=lambda index: 0), sequence=2)

    node.refresh_from_db()
    assert node.locality == {}
