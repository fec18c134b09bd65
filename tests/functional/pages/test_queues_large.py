"""Pages of queues at 10,000 cards, 5,000 running and 1,500 pending claims: query counts; latency if asked for."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, DjangoDbBlocker

from apps.accounts.models import Team, User
from apps.quotas.models import Claim, ClaimForecast, ForecastRun, Queue
from controlplane.domain.quotas.claims import ClaimState, GangShape, RoleShape
from tests import factories
from tests.factories.crowds import crowd
from tests.functional.roles.conftest import Undone

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
NODES, RUNNING, WAITING, QUEUES = 1250, 5000, 1500, 30
#: Session and person, the bell, and what the page asks, whatever the size.
QUERIES = {
    "tree": 8,
    "waiting": 10,
    "running": 11,
    "chart": 11,
    "claim": 15,
    "forecast": 12,
    "console": 15,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Large:
    root: User
    queue: Queue
    claim: Claim

    def address(self, page: str) -> str:
        return {
            "tree": "/queues",
            "waiting": f"/queues/{self.queue.uid}",
            "running": f"/queues/{self.queue.uid}?tab=running",
            "chart": f"/queues/{self.queue.uid}/usage?chip=nvidia-h800&window=24h",
            "claim": f"/claims/{self.claim.uid}",
            "forecast": "/forecast",
            "console": "/admin/quotas/queue/",
        }[page]


@pytest.fixture(scope="module")
def large(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Large]:
    """Created once: a nearly full fleet, a tree of thirty queues, and forecasts of pending claims."""
    with django_db_blocker.unblock(), Undone():
        team = factories.team("maps")
        root = factories.user("root", admin=True)
        crowd(nodes=NODES, claims=RUNNING, team=team)
        queue = _tree(team)
        _waiting(team, queue)
        _analyzed()
        claim = Claim.objects.filter(queue=queue, state=ClaimState.PENDING).latest("id")
        yield Large(root=root, queue=queue, claim=claim)


def _tree(team: Team) -> Queue:
    """Thirty queues below one; the crowd's own has most of the work."""
    top = Queue.objects.create(name="fleet")
    top.entitlements.create(chip="nvidia-h800", guaranteed=9000, cap=10_000)
    crowded = Queue.objects.get(name="crowded")
    Queue.objects.filter(pk=crowded.pk).update(parent=top, created_at=timezone.now() - timedelta(2))
    crowded.entitlements.create(chip="nvidia-h800", guaranteed=4000, cap=9000)
    for number in range(QUEUES - 2):
        below = Queue.objects.create(name=f"team-{number}", parent=top, team=team)
        below.entitlements.create(chip="nvidia-h800", guaranteed=150, cap=1000)
    return crowded


def _waiting(team: Team, queue: Queue) -> None:
    shape = GangShape(roles=(RoleShape(name="run", replicas=1, cards=8),)).as_json()
    others = list(Queue.objects.filter(name__startswith="team-"))
    rows = Claim.objects.bulk_create(
        Claim(
            owner_kind="attempt",
            owner_uid=f"{number:031x}w",
            work_kind="job",
            work_uid=f"{number:031x}w",
            work_name=f"hopes {number}",
            team=team,
            queue=queue if number % 2 else others[number % len(others)],
            shape=shape,
            card_count=8,
            chips=["nvidia-h800"],
            priority=number % 3,
            explanation="needs 8 × nvidia-h800; 5 of 10000 are free",
            explanation_numbers={"wanted": 8, "free": 5},
        )
        for number in range(WAITING)
    )
    now = timezone.now()
    ClaimForecast.objects.bulk_create(
        ClaimForecast(
            claim=row,
            starts_at=now + timedelta(minutes=place),
            earliest=now + timedelta(minutes=place // 2),
            latest=now + timedelta(minutes=2 * place),
            reason="starts when others end",
            place=place + 1,
            created_at=now,
        )
        for place, row in enumerate(rows)
    )
    ForecastRun.objects.create(at=now, ended_at=now, waiting=WAITING, looked_at=WAITING, horizon=1)


def _analyzed() -> None:
    """As autovacuum does: plans must not rest on what other tests left in these tables."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


@pytest.mark.parametrize("page", QUERIES)
def test_pages_of_a_large_fleet_stay_within_their_queries(
    large: Large,
    page: str,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    browser = Client()
    browser.force_login(large.root)
    address = large.address(page)
    browser.get(address)
    with django_assert_max_num_queries(QUERIES[page]):
        assert browser.get(address).status_code == 200
    if path := os.environ.get("NINEFOLD_FIGURES"):
        _record_latency(browser, page, address=address, path=Path(path))


def _record_latency(browser: Client, page: str, *, address: str, path: Path) -> None:
    """Add the median of five visits to a file, for docs/benchmarks.md; no limit, for it depends on other work."""
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        browser.get(address)
        seconds.append(time.perf_counter() - began)
    milliseconds = round(1000 * statistics.median(seconds))
    with path.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps({"page": page, "milliseconds": milliseconds}) + "\n")
