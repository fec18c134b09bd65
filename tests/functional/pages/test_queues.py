"""Pages of queues and claims: the tree, pending claims with reasons, and visibility."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import Team, User
from apps.fleet.models import Cluster
from apps.quotas.models import Claim, ClaimForecast, Queue, WhatIf
from apps.quotas.reconcilers import forecasts_refresh, what_ifs_reconcile
from controlplane.domain.quotas.claims import ClaimState
from controlplane.domain.scheduling.plans import SchedulingPolicy
from controlplane.domain.scheduling.what_if import WhatIfState
from tests import factories
from tests.factories import usage
from tests.functional.pages.test_every_page import check
from tests.functional.sample_rows import FilledCompany

pytestmark = pytest.mark.django_db


@dataclass(frozen=True, slots=True, kw_only=True)
class Small:
    """One node of eight cards with three claims on six of them, and a pending claim for four."""

    team: Team
    ada: User
    queue: Queue
    cluster: Cluster
    running: Claim
    waiting: Claim


@pytest.fixture
def small() -> Small:
    team, queue = factories.team(), factories.queue()
    ada = factories.user("ada", team=team)
    cluster = factories.cluster(cards=8)
    since = timezone.now() - timedelta(hours=1)
    for name in ("one", "two"):
        usage.holding(since=since, queue=queue, team=team, user=ada, cards=2, name=name)
    running = usage.holding(since=since, queue=queue, team=team, user=ada, cards=2, name="three")
    waiting = usage.waiting(queue=queue, team=team, user=ada, cards=4, name="needs many")
    factories.schedule()
    waiting.refresh_from_db()
    return Small(team=team, ada=ada, queue=queue, cluster=cluster, running=running, waiting=waiting)


@pytest.fixture
def browser(client: Client, small: Small) -> Client:
    client.force_login(small.ada)
    return client


def test_the_tree_shows_used_free_and_pending(browser: Client, small: Small) -> None:
    small.queue.entitlements.create(chip="cpu", guaranteed=1, cap=8)
    said = browser.get("/queues").text
    check(said)
    assert "guaranteed 1" in said
    assert "borrowed 5" in said
    assert "free 2" in said
    assert "1 pending, 4 cards requested" in said


def widths(said: str, kind: str) -> list[float]:
    """How wide the bars' parts of that kind are, in thousandths of a whole bar."""
    return [
        float(one)
        for one in re.findall(
            rf'data-part="{kind}" x="[\d.]+" y="2" height="12" width="([\d.]+)"', said
        )
    ]


def test_bars_of_one_chip_have_one_scale_in_the_product_and_in_the_console(
    browser: Client, small: Small
) -> None:
    """A whole bar is the fleet of the chip, which has eight cards."""
    small.queue.entitlements.create(chip="cpu", guaranteed=4, cap=6)
    other = factories.queue(name="other")
    other.entitlements.create(chip="cpu", guaranteed=2)
    said = browser.get("/queues").text
    assert widths(said, "own") == [500, 500]  # of the fleet, and of the queue
    assert widths(said, "borrowed") == [250, 250]
    assert widths(said, "idle") == [250]
    assert widths(said, "room") == [250, 750]  # free cards; none below the cap, which is reached
    browser.force_login(factories.user("root", admin=True))
    console = browser.get(reverse("admin:quotas_queue_changelist")).text
    for kind in ("own", "borrowed", "idle"):
        assert widths(console, kind) == widths(said, kind)[-1:], kind


def test_the_tree_can_be_filtered_by_chip(browser: Client, small: Small) -> None:
    small.queue.entitlements.create(chip="ascend-910b3", guaranteed=4, cap=8)
    assert "ascend-910b3</span>" in browser.get("/queues").text
    assert "ascend-910b3</span>" not in browser.get("/queues?chip=cpu").text


def test_a_queue_lists_pending_claims_in_scheduling_order(browser: Client, small: Small) -> None:
    urgent = usage.waiting(
        queue=small.queue, team=small.team, user=small.ada, cards=5, name="cannot wait"
    )
    Claim.objects.filter(pk=urgent.pk).update(priority=10)
    said = browser.get(f"/queues/{small.queue.uid}").text
    assert said.index("cannot wait") < said.index("needs many")
    assert "priority 10" in said


def test_an_evicted_workload_keeps_its_position(browser: Client, small: Small) -> None:
    again = usage.waiting(queue=small.queue, team=small.team, cards=4, name="was revoked")
    Claim.objects.filter(pk=again.pk).update(in_line_since=timezone.now() - timedelta(hours=2))
    said = browser.get(f"/queues/{small.queue.uid}").text
    assert said.index("was revoked") < said.index("needs many")
    assert (
        "of 2 pending workloads in queue default"
        in browser.get(f"/claims/{small.waiting.uid}").text
    )


def test_claims_are_exported_as_csv(browser: Client, small: Small) -> None:
    answer = browser.get(f"/queues/{small.queue.uid}?tab=waiting&format=csv")
    lines = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    assert "needs many" in lines
    assert "cpu" in lines


@pytest.mark.parametrize("tab", ["waiting", "running", "usage", "changes"])
def test_every_tab_of_a_queue_renders(browser: Client, small: Small, tab: str) -> None:
    answer = browser.get(f"/queues/{small.queue.uid}?tab={tab}")
    assert answer.status_code == 200
    check(answer.text)


def test_usage_over_time_matches_allocations(browser: Client, small: Small) -> None:
    created = timezone.now() - timedelta(hours=3)
    Queue.objects.filter(pk=small.queue.pk).update(created_at=created)
    small.queue.entitlements.create(chip="cpu", guaranteed=3, cap=7)
    found = browser.get(f"/queues/{small.queue.uid}/usage?chip=cpu&window=24h").json()
    lines = {one["name"]: one["y"] for one in found["series"]}
    # Five minutes a step: nothing before there was the queue, then two hours of nothing, then six cards for one.
    assert lines["allocated"][0] is None
    assert lines["allocated"][-24] == 0
    assert lines["allocated"][-4] == 6
    assert sum(value or 0 for value in lines["allocated"]) / 12 == pytest.approx(6, abs=0.55)
    assert lines["guaranteed"][-1] == 3
    assert lines["cap"][-1] == 7


def test_a_pending_claim_shows_reason_numbers_position_and_queue(
    browser: Client, small: Small
) -> None:
    said = browser.get(f"/claims/{small.waiting.uid}").text
    check(said)
    assert small.waiting.explanation in said
    assert "Requested cards" in said
    assert "of 1 pending workload in queue default" in said
    assert "No forecast" in said


def test_the_panel_polls_while_the_claim_is_pending(browser: Client, small: Small) -> None:
    asked = {"HX-Request": "true"}
    assert browser.get(f"/claims/{small.waiting.uid}", headers=asked).status_code == 200
    assert browser.get(f"/claims/{small.running.uid}", headers=asked).status_code == 286


def test_pending_and_running_jobs_show_the_panel(client: Client, filled: FilledCompany) -> None:
    client.force_login(filled.user)
    claim = Claim.objects.get(owner_uid=filled.waiting.attempts.get().uid)
    assert f'hx-get="/claims/{claim.uid}"' in client.get(f"/jobs/{filled.waiting.uid}").text
    assert "Placement" in client.get(f"/jobs/{filled.running.uid}").text
    assert 'id="why-title"' not in client.get(f"/jobs/{filled.failed.uid}").text


def test_a_forecast_is_shown_with_range_and_blocking_workloads(
    browser: Client, small: Small
) -> None:
    now = timezone.now()
    for hours in (2, 3):
        past = usage.waiting(queue=small.queue, team=small.team, cards=2)
        usage.admit(past, at=now - timedelta(hours=hours))
        usage.release(past, at=now)
    assert forecasts_refresh(policy=SchedulingPolicy(), at=now) == 1
    forecast = ClaimForecast.objects.get(claim=small.waiting)
    assert forecast.starts_at is not None
    assert forecast.place == 1
    said = browser.get(f"/claims/{small.waiting.uid}").text
    assert re.search(r"Expected start: about (\w+ \w+, )?\d\d:\d\d UTC", said)
    assert "After the end of:" in said


def test_a_what_if_shows_its_result(browser: Client, small: Small) -> None:
    node = small.cluster.nodes.get()
    page = f"/claims/{small.waiting.uid}/what-if"
    check(browser.get(page).text)
    answer = browser.post(page, {"nodes": 1, "like": node.name})
    assert answer.status_code == 302
    asked = answer["Location"]
    assert "The simulation is running" in browser.get(asked).text
    assert what_ifs_reconcile(policy=SchedulingPolicy(), at=timezone.now()) == 1
    assert WhatIf.objects.get().state == WhatIfState.ANSWERED
    said = browser.get(asked).text
    check(said)
    assert "Starts next; enough cards are free." in said
    assert Claim.objects.get(pk=small.waiting.pk).state == ClaimState.PENDING


def test_a_what_if_without_changes_is_refused(browser: Client, small: Small) -> None:
    answer = browser.post(f"/claims/{small.waiting.uid}/what-if", {})
    assert answer.status_code == 422
    assert "Enter at least one change" in answer.text


def test_open_what_ifs_per_user_are_limited(browser: Client, small: Small) -> None:
    page = f"/claims/{small.waiting.uid}/what-if"
    asked = {"cards": 1, "chip": "cpu"}
    assert [browser.post(page, asked).status_code for _ in range(4)] == [302, 302, 302, 422]


def test_a_reclaim_preview_lists_victims(browser: Client, small: Small) -> None:
    Claim.objects.filter(state=ClaimState.ADMITTED).update(preemptible=True)
    guaranteed = Queue.objects.create(name="owed", team=small.team)
    guaranteed.entitlements.create(chip="cpu", guaranteed=8)
    said = browser.get(f"/queues/{guaranteed.uid}/reclaim?chip=cpu&cards=8&together=1").text
    check(said)
    assert "3 workloads are preempted, 6 cards are reclaimed" in said
    assert "queue default uses more than its guaranteed 0 × cpu" in said
    assert Claim.objects.filter(state=ClaimState.ADMITTED).count() == 3


def test_workloads_of_other_teams_show_only_team_and_size(client: Client, small: Small) -> None:
    client.force_login(factories.user("bob", team=factories.team("search")))
    said = client.get(f"/queues/{small.queue.uid}").text
    assert "needs many" not in said
    assert f"team {small.team.name}" in said
    assert client.get(f"/claims/{small.waiting.uid}").status_code == 404


def test_forecasts_of_all_claims_are_for_administrators(browser: Client, small: Small) -> None:
    assert browser.get("/forecast").status_code == 403
    root = Client()
    root.force_login(factories.user("root", admin=True))
    answer = root.get("/forecast")
    assert answer.status_code == 200
    check(answer.text)
