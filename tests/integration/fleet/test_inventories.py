"""Rows of nodes and cards follow what clusters report; operators' decisions stay."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.db import transaction

from apps.accounts.models import AuditEntry
from apps.accounts.selectors import PermissionRefused
from apps.fleet import reconcilers, selectors, services
from apps.fleet.models import Card, Cluster, Node
from apps.fleet.services import card_availability
from apps.quotas.selectors.snapshots import cached_nodes
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.permissions import TeamRole
from controlplane.domain.common.resources import Bytes, Millicpu, Resources
from controlplane.ports.clusters import ObservedCard, ObservedNode
from tests import factories
from tests.integration.company import Company
from tests.integration.threads import at_once, raised


def node(
    name: str = "n1",
    *,
    cards: tuple[int, ...] = (0, 1),
    unhealthy: tuple[int, ...] = (),
    taken: tuple[int, ...] = (),
) -> ObservedNode:
    return ObservedNode(
        name=name,
        cards=tuple(
            ObservedCard(
                index=index,
                chip="cpu",
                serial=f"S{index}",
                healthy=index not in unhealthy,
                taken=index in taken,
            )
            for index in cards
        ),
        capacity=Resources(cpu=Millicpu(2000), memory=Bytes(1 << 30)),
        labels={"zone": "a"},
    )


@pytest.fixture
def cluster(company: Company) -> Cluster:
    return Cluster.objects.create(name="east", kind="fake")


def report(company: Company, cluster: Cluster, *nodes: ObservedNode) -> None:
    services.inventory_record(
        cluster=cluster, nodes=nodes, isolation="an account of its own", at=company.at
    )


def states(cluster: Cluster) -> list[str]:
    cards = Card.objects.filter(node__cluster=cluster).order_by("node__name", "index")
    return list(cards.values_list("state", flat=True))


def test_the_first_inventory_creates_nodes_and_cards(company: Company, cluster: Cluster) -> None:
    report(company, cluster, node())

    row = Node.objects.get(cluster=cluster)
    assert (row.cpu, row.memory, row.ready, row.labels) == (2000, 1 << 30, True, {"zone": "a"})
    assert row.last_seen_at == company.at
    assert list(row.cards.values_list("index", "chip", "serial", "state")) == [
        (0, "cpu", "S0", "usable"),
        (1, "cpu", "S1", "usable"),
    ]
    cluster.refresh_from_db()
    assert (cluster.isolation, cluster.error) == ("an account of its own", "")


def test_a_repeated_inventory_changes_nothing(company: Company, cluster: Cluster) -> None:
    report(company, cluster, node())
    before = list(Card.objects.values())
    report(company, cluster, node())

    assert list(Card.objects.values()) == before


def test_cards_of_other_workloads_are_unknown_until_released(
    company: Company, cluster: Cluster
) -> None:
    report(company, cluster, node(cards=(0, 1, 2), taken=(1, 2)))
    assert states(cluster) == ["usable", "unknown", "unknown"]
    assert Card.objects.get(node__cluster=cluster, index=1).state_reason == services.TAKEN

    report(company, cluster, node(cards=(0, 1, 2), taken=(2,), unhealthy=(1,)))
    assert Card.objects.get(node__cluster=cluster, index=1).state_reason == services.UNHEALTHY
    report(company, cluster, node(cards=(0, 1, 2)))
    assert states(cluster) == ["usable", "usable", "usable"]


def test_an_isolated_card_stays_isolated_while_other_workloads_use_it(
    company: Company, cluster: Cluster
) -> None:
    report(company, cluster, node())
    Card.objects.filter(node__cluster=cluster, index=0).update(state=CardState.ISOLATED)
    report(company, cluster, node(taken=(0,)))
    assert states(cluster) == ["isolated", "usable"]


def test_a_missing_card_becomes_unknown_and_usable_again_when_it_is_back(
    company: Company, cluster: Cluster
) -> None:
    report(company, cluster, node())
    report(company, cluster, node(cards=(0,)))
    assert states(cluster) == ["usable", "unknown"]
    assert Card.objects.get(node__cluster=cluster, index=1).state_reason == services.UNSEEN

    report(company, cluster, node())
    assert states(cluster) == ["usable", "usable"]
    assert Card.objects.get(node__cluster=cluster, index=1).state_reason == ""


def test_an_unhealthy_card_becomes_unknown_until_it_is_healthy(
    company: Company, cluster: Cluster
) -> None:
    report(company, cluster, node())
    report(company, cluster, node(unhealthy=(1,)))
    assert states(cluster) == ["usable", "unknown"]
    report(company, cluster, node())
    assert states(cluster) == ["usable", "usable"]


def test_a_missing_node_is_not_ready_and_its_cards_are_unknown_until_it_is_back(
    company: Company, cluster: Cluster
) -> None:
    report(company, cluster, node("n1"), node("n2"))
    report(company, cluster, node("n1"))

    gone = Node.objects.get(cluster=cluster, name="n2")
    assert not gone.ready
    assert states(cluster) == ["usable", "usable", "unknown", "unknown"]
    report(company, cluster, node("n1"), node("n2"))
    gone.refresh_from_db()
    assert gone.ready
    assert set(states(cluster)) == {"usable"}


def divided(*, slices: int) -> ObservedNode:
    """A node with one card, and another that is divided."""
    whole = node(cards=(0, 1))
    parent = replace(whole.cards[1], partitioned=True)
    parts = (
        ObservedCard(index=2 + step, chip="part-of-cpu", parent=parent.index)
        for step in range(slices)
    )
    return replace(whole, cards=(whole.cards[0], parent, *parts))


def test_slices_are_usable_and_their_parent_card_is_not(company: Company, cluster: Cluster) -> None:
    report(company, cluster, divided(slices=2))

    parent = Card.objects.get(node__cluster=cluster, index=1)
    assert (parent.state, parent.state_reason) == (CardState.UNKNOWN, services.PARTITIONED)
    assert states(cluster) == ["usable", "unknown", "usable", "usable"]
    assert [card.index for card in parent.slices.order_by("index")] == [2, 3]

    # Divided in another way, then not at all.
    report(company, cluster, divided(slices=1))
    assert states(cluster) == ["usable", "unknown", "usable", "unknown"]
    report(company, cluster, node(cards=(0, 1)))
    assert states(cluster) == ["usable", "usable", "unknown", "unknown"]


def test_a_card_that_is_partitioned_later_keeps_its_row(company: Company, cluster: Cluster) -> None:
    report(company, cluster, node(cards=(0, 1)))
    before = set(Card.objects.values_list("uid", flat=True))
    report(company, cluster, divided(slices=2))
    assert before < set(Card.objects.values_list("uid", flat=True))
    assert Card.objects.filter(parent__index=1).count() == 2


def test_placement_never_sees_a_card_beside_its_slices(company: Company, cluster: Cluster) -> None:
    report(company, cluster, divided(slices=2))
    # As it stands between the end of its isolation and the next inventory.
    Card.objects.filter(node__cluster=cluster, index=1).update(state=CardState.USABLE)
    seen = [
        node
        for node in cached_nodes(held={}, nominated={}, allocated={}, server=None)
        if node.cluster == cluster.uid
    ]
    assert [[card.index for card in node.cards] for node in seen] == [[0, 2, 3]]


def test_a_slice_of_an_isolated_card_is_isolated_from_the_beginning(
    company: Company, cluster: Cluster
) -> None:
    report(company, cluster, node(cards=(0, 1)))
    Card.objects.filter(node__cluster=cluster, index=1).update(
        state=CardState.ISOLATED, state_reason="uncorrectable errors"
    )
    report(company, cluster, divided(slices=2))
    assert states(cluster) == ["usable", "isolated", "isolated", "isolated"]


@pytest.mark.parametrize("state", [CardState.ISOLATED, CardState.NO_NEW_WORK])
@pytest.mark.parametrize("reason", ["uncorrectable errors", services.UNSEEN])
def test_an_operator_decision_survives_inventories(
    company: Company, cluster: Cluster, state: CardState, reason: str
) -> None:
    report(company, cluster, node())
    Card.objects.filter(node__cluster=cluster).update(state=state, state_reason=reason)

    report(company, cluster, node(cards=(0,)))
    report(company, cluster, node(unhealthy=(0, 1)))
    report(company, cluster, node())

    assert set(states(cluster)) == {state}


def test_a_cordoned_node_stays_cordoned(company: Company, cluster: Cluster) -> None:
    report(company, cluster, node())
    row = Node.objects.get(cluster=cluster)
    with pytest.raises(PermissionRefused, match="company role operator"):
        services.node_set_cordoned(node=row, cordoned=True, actor=company.engineer)
    operator = factories.user("olga", team=company.team, role=TeamRole.VIEWER, operator=True)
    assert services.node_set_cordoned(node=row, cordoned=True, actor=operator)
    assert not services.node_set_cordoned(node=row, cordoned=True, actor=operator)

    report(company, cluster, node())

    row.refresh_from_db()
    assert row.cordoned
    assert AuditEntry.objects.filter(action="node.cordon").count() == 1


def test_a_failing_cluster_does_not_affect_others(company: Company, cluster: Cluster) -> None:
    Cluster.objects.create(name="absent", kind="abacus")
    Cluster.objects.create(name="broken", kind="fake", options={"no_such_option": 1})
    company.cluster.lose_contact()

    assert reconcilers.inventories_sync(at=company.at) == 1

    errors = dict(Cluster.objects.values_list("name", "error"))
    assert errors["east"] == ""
    assert "no ninefold.clusters adapter is called 'abacus'" in errors["absent"]
    assert "no_such_option" in errors["broken"]
    assert "lost contact" in errors[company.cluster_row.name]
    company.cluster.regain_contact()
    reconcilers.inventories_sync(at=company.at)
    company.cluster_row.refresh_from_db()
    assert company.cluster_row.error == ""


def test_an_unreachable_cluster_isolates_nothing(company: Company) -> None:
    company.cluster.lose_contact()
    company.take_stock()

    assert states(company.cluster_row) == ["usable", "usable"]


def test_concurrent_inventories_create_one_set_of_rows(committed_company: Company) -> None:
    company = committed_company
    cluster = Cluster.objects.create(name="east", kind="fake")

    def sync() -> None:
        report(company, cluster, node("n1"), node("n2"))

    outcomes = at_once(sync, sync, sync)

    assert raised(outcomes, Exception) == 0
    assert Node.objects.filter(cluster=cluster).count() == 2
    assert Card.objects.filter(node__cluster=cluster).count() == 4


def test_the_fleet_is_counted_by_chip(company: Company) -> None:
    Card.objects.filter(index=0).update(state=CardState.ISOLATED)

    assert selectors.cards_by_chip() == {"cpu": {"total": 2, "usable": 1}}
    (counted,) = map(vars, selectors.clusters_with_counts())
    assert (counted["node_count"], counted["card_count"]) == (1, 2)


def test_a_card_released_while_its_node_is_not_ready_is_unknown_until_the_next_inventory(
    company: Company, cluster: Cluster
) -> None:
    report(company, cluster, node(cards=(0,)), node("n2", cards=(0,)))
    Card.objects.filter(node__cluster=cluster).update(state=CardState.ISOLATED)
    report(company, cluster, node("n2", cards=(0,)))
    rows = Node.objects.filter(cluster=cluster)
    with transaction.atomic():
        card_availability.cards_return_to_service(
            cards=card_availability.lock_cards_of_nodes(nodes=[row.pk for row in rows])
        )

    assert states(cluster) == ["unknown", "usable"]
    away = Card.objects.get(node__cluster=cluster, node__name="n1")
    assert away.state_reason == card_availability.UNREADY
    report(company, cluster, node("n2", cards=(0,)))
    assert states(cluster) == ["unknown", "usable"]
    report(company, cluster, node(cards=(0,)), node("n2", cards=(0,)))
    assert states(cluster) == ["usable", "usable"]
