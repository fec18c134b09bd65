"""Waste and exposure: who holds what for nothing, and on whose chips the company stands."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.models import Team
from apps.console.selectors.fleet_reports import idle_cards
from apps.fleet.models import Card
from apps.models.models import CatalogModel, ModelVersion
from apps.models.selectors.catalog import published_catalog
from apps.models.services.catalog import catalog_load
from apps.quotas.models import Claim, Queue
from apps.telemetry.models import CardHour
from tests import factories
from tests.factories import usage
from tests.functional.pages.conftest import logged_in

pytestmark = pytest.mark.django_db
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


@pytest.fixture
def queue() -> Queue:
    return factories.queue()


def csv(browser: Client, address: str) -> str:
    return b"".join(browser.get(address).streaming_content).decode()  # type: ignore[attr-defined]


def cards(chip: str = "nvidia-h800", *, count: int = 4) -> list[Card]:
    factories.cluster(cards=count)
    Card.objects.update(chip=chip)
    return list(Card.objects.order_by("index"))


def held(team: Team, queue: Queue, *, hours: float = 6, cards: int = 2) -> Claim:
    since = timezone.now() - timedelta(hours=hours)
    return usage.holding(
        since=since, queue=queue, team=team, cards=cards, name="notebook", chip="nvidia-h800"
    )


def idle(card: Card, *, minutes: float, utilization: float = 1.0) -> None:
    """Measured as idle for so long, and now."""
    now = timezone.now()
    factories.card_metrics([card], utilization=utilization)
    factories.history(
        card,
        since=now - timedelta(minutes=minutes),
        until=now,
        measured=lambda _at: {"utilization": utilization},
    )


def busy_at(card: Card, *, minutes: float) -> None:
    at = timezone.now() - timedelta(minutes=minutes)
    factories.history(card, since=at, until=at, measured=lambda _at: {"utilization": 90.0})


def test_a_card_counts_once_it_was_held_and_idle_for_half_an_hour(team: Team, queue: Queue) -> None:
    lately, long, working, unheld = cards()
    held(team, queue, cards=3)
    idle(lately, minutes=29)
    busy_at(lately, minutes=29.5)
    idle(long, minutes=31)
    busy_at(long, minutes=31.5)
    idle(working, minutes=60, utilization=40.0)
    idle(unheld, minutes=60)
    now = timezone.now()
    (found,) = idle_cards(at=now)
    assert found.card == long.uid
    assert timedelta(minutes=31) < now - found.since < timedelta(minutes=32)


def test_what_was_idle_before_it_was_held_does_not_count(team: Team, queue: Queue) -> None:
    (card,) = cards(count=1)
    held(team, queue, hours=0.25, cards=1)
    idle(card, minutes=90)
    assert idle_cards(at=timezone.now()) == []


def test_a_card_that_nobody_measures_is_not_called_idle(team: Team, queue: Queue) -> None:
    never, old = cards(count=2)
    held(team, queue)
    factories.card_metrics([never], utilization=None)
    factories.card_metrics([old], utilization=0.0, at=timezone.now() - 10 * MINUTE)
    assert idle_cards(at=timezone.now()) == []
    text = logged_in("vera", team=team).get("/fleet/waste").text
    assert "No idle allocation" in text


def test_when_it_last_worked_is_found_in_the_hourly_sums(team: Team, queue: Queue) -> None:
    (card,) = cards(count=1)
    held(team, queue, hours=60, cards=1)
    idle(card, minutes=200)
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    CardHour.objects.bulk_create(
        CardHour(
            card=card,
            hour=hour - number * HOUR,
            samples=360,
            utilization_max=70.0 if number == 40 else 1.0,
        )
        for number in range(2, 50)
    )
    (found,) = idle_cards(at=timezone.now())
    assert found.since == hour - 39 * HOUR


def test_waste_names_the_work_to_its_team_and_the_team_to_everybody(
    team: Team, queue: Queue
) -> None:
    for card in cards(count=2):
        idle(card, minutes=120)
    held(team, queue)
    own = logged_in("vera", team=team).get("/fleet/waste").text
    others = logged_in("otto", team=factories.team("search")).get("/fleet/waste").text
    assert "notebook" in own
    assert "notebook" not in others
    assert "workload of team maps" in others
    assert "2 of 2" in own
    assert "of 2 allocated" in own
    assert "notebook" in csv(logged_in("vik", team=team), "/fleet/waste?format=csv")


def test_the_overview_counts_what_is_wasted(team: Team, queue: Queue) -> None:
    for card in cards(count=2):
        idle(card, minutes=120)
    held(team, queue)
    text = logged_in("vera", team=team).get("/fleet").text
    assert 'data-label="Idle allocation">2</td>' in " ".join(text.split())


def test_an_exposure_says_how_much_rests_on_one_maker(team: Team, queue: Queue) -> None:
    cards()
    held(team, queue, hours=10, cards=3)
    Card.objects.filter(index=3).update(chip="ascend-910b3")
    usage.holding(since=timezone.now() - 10 * HOUR, queue=queue, team=team, chip="ascend-910b3")
    browser = logged_in("vera", team=team)
    text = browser.get("/fleet/exposure").text
    assert "75 % of the card-hours are on chips of NVIDIA" in text
    # 0.75² + 0.25²
    assert "0.62" in text or "0.63" in text
    lines = csv(browser, "/fleet/exposure?format=csv").splitlines()
    assert lines[1].startswith("NVIDIA,30.")
    other = logged_in("otto", team=factories.team("search"))
    assert "No usage in the last 30 days" in other.get("/fleet/exposure").text


def test_a_deployment_could_move_where_a_source_says_so(team: Team, queue: Queue) -> None:
    cards()
    owner = factories.user(team=team)
    model = factories.model_version(actor=owner, team=team)
    row = factories.deployment(actor=owner, team=team, queue=queue, model=model, name="talk")
    claim = held(team, queue)
    Claim.objects.filter(pk=claim.pk).update(work_kind="deployment", work_uid=row.uid)
    browser = logged_in("vera", team=team)
    assert "the model is not in the catalog" in browser.get("/fleet/exposure").text
    catalog_load(catalog=published_catalog(), at=timezone.now())
    known = CatalogModel.objects.get(key="qwen2.5-7b-instruct")
    ModelVersion.objects.filter(pk=model.pk).update(catalog_model=known)
    text = " ".join(browser.get("/fleet/exposure").text.split())
    assert "Huawei Ascend" in text.partition("Alternative vendors")[2]
