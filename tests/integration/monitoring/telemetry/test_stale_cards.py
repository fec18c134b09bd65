"""Cards that fall silent take no new work, unless it is us who do not hear."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from apps.fleet.models import Card
from apps.fleet.services.card_availability import METRICS_STALE
from apps.monitoring.reconcilers.metric_sources import stale_cards_reconcile
from apps.telemetry.models import CardMetrics, Source
from controlplane.domain.common.accelerators import CardState
from tests.integration.monitoring.telemetry.metric_scenarios import (
    AT,
    cluster_of,
    reading,
    record,
    source_of,
)

pytestmark = pytest.mark.django_db
NODES, CARDS = 10, 2


@pytest.fixture
def source() -> Source:
    """Of ten nodes with two cards each, all of which were just heard."""
    source = source_of(cluster_of(nodes=NODES, cards=CARDS), read_at=AT)
    report(source, range(NODES), at=AT)
    return source


def report(source: Source, nodes: range, *, at: datetime, cards: int = CARDS) -> None:
    readings = [reading(f"n{node}", card, at=at) for node in nodes for card in range(cards)]
    record(source, *readings, at=at)
    Source.objects.filter(pk=source.pk).update(read_at=at)


def stale_cards() -> set[tuple[str, int]]:
    rows = Card.objects.filter(state=CardState.UNKNOWN, state_reason=METRICS_STALE)
    return set(rows.values_list("node__name", "index"))


def later(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def test_a_node_of_which_nothing_is_heard_for_three_readings_is_unknown(source: Source) -> None:
    for seconds in (5, 10, 15):
        report(source, range(1, NODES), at=later(seconds))
        assert stale_cards_reconcile(at=later(seconds)) == 0
    report(source, range(1, NODES), at=later(16))

    assert stale_cards_reconcile(at=later(16)) == CARDS
    assert stale_cards() == {("n0", 0), ("n0", 1)}
    assert stale_cards_reconcile(at=later(17)) == 0


def test_one_card_that_is_missing_while_its_node_is_heard_is_unknown(source: Source) -> None:
    report(source, range(NODES), at=later(20), cards=1)
    report(source, range(1, NODES), at=later(20))
    stale_cards_reconcile(at=later(20))
    assert stale_cards() == {("n0", 1)}


def test_a_card_that_is_heard_again_takes_work_again(source: Source) -> None:
    report(source, range(1, NODES), at=later(20))
    stale_cards_reconcile(at=later(20))
    report(source, range(NODES), at=later(25))

    assert stale_cards_reconcile(at=later(25)) == CARDS
    assert stale_cards() == set()
    assert Card.objects.get(node__name="n0", index=0).state_reason == ""


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (CardState.ISOLATED, "a fault"),
        (CardState.UNKNOWN, "another reason"),
        (CardState.NO_NEW_WORK, ""),
    ],
)
def test_what_somebody_else_withheld_stays_as_it_is(
    source: Source, state: CardState, reason: str
) -> None:
    cards = Card.objects.filter(node__name="n0")
    cards.update(state=state, state_reason=reason)
    report(source, range(1, NODES), at=later(20))
    stale_cards_reconcile(at=later(20))
    report(source, range(NODES), at=later(25))
    stale_cards_reconcile(at=later(25))
    assert set(cards.values_list("state", "state_reason")) == {(state, reason)}


def test_many_nodes_silent_together_are_our_own_trouble(source: Source) -> None:
    report(source, range(4, NODES), at=later(20))

    assert stale_cards_reconcile(at=later(20)) == 0
    source.refresh_from_db()
    assert source.stalled.startswith("4 of 10 nodes are stale at the same time; above 30 %")

    report(source, range(2, NODES), at=later(25))
    assert stale_cards_reconcile(at=later(25)) == 2 * CARDS
    source.refresh_from_db()
    assert source.stalled == ""


def test_a_source_that_cannot_be_read_says_nothing_of_its_cards(source: Source) -> None:
    report(source, range(1, NODES), at=later(14))
    Source.objects.filter(pk=source.pk).update(error="connection refused")
    assert stale_cards_reconcile(at=later(20)) == 0
    source.refresh_from_db()
    assert "cannot be read" in source.stalled


def test_a_source_of_which_nothing_comes_says_nothing_of_its_cards(source: Source) -> None:
    assert stale_cards_reconcile(at=later(60)) == 0
    assert stale_cards() == set()
    source.refresh_from_db()
    assert "the source has sent no data within its heartbeat timeout" in source.stalled


def test_nodes_that_are_unknown_already_do_not_hold_back_the_next(source: Source) -> None:
    for gone in range(1, 7):
        report(source, range(gone, NODES), at=later(700 * gone))
        stale_cards_reconcile(at=later(700 * gone))
        assert len(stale_cards()) == CARDS * gone


def test_silence_that_spreads_node_by_node_is_our_own_trouble_too(source: Source) -> None:
    for gone in range(1, 7):
        report(source, range(gone, NODES), at=later(20 * gone))
        stale_cards_reconcile(at=later(20 * gone))
    assert len(stale_cards()) == CARDS * 3
    source.refresh_from_db()
    assert source.stalled.startswith("6 of 10 nodes are stale at the same time")


def test_cards_that_nobody_measures_any_more_are_not_held_for_it(source: Source) -> None:
    report(source, range(1, NODES), at=later(20))
    stale_cards_reconcile(at=later(20))
    source.enabled = False
    source.save()
    assert stale_cards_reconcile(at=later(25)) == CARDS
    assert stale_cards() == set()


def test_cards_that_were_never_measured_are_not_missed(source: Source) -> None:
    CardMetrics.objects.filter(card__node__name="n0").delete()
    report(source, range(1, NODES), at=later(30))
    assert stale_cards_reconcile(at=later(30)) == 0


def test_the_queries_of_a_turn_do_not_grow_with_the_cards(
    source: Source, django_assert_max_num_queries: object
) -> None:
    report(source, range(2, NODES), at=later(20))
    with django_assert_max_num_queries(12):  # type: ignore[operator]
        stale_cards_reconcile(at=later(20))
