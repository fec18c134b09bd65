"""The forecaster: when it runs, which claims it considers, and what it stores."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from apps.accounts.models import Team
from apps.quotas.models import Claim, ClaimForecast, ForecastRun, Queue
from apps.quotas.reconcilers import forecasts_refresh
from apps.quotas.reconcilers.forecasts import FORECAST_LEASE, MIN_PAUSE, pause_after_forecast
from apps.quotas.selectors import forecasts
from controlplane.domain.scheduling.plans import SchedulingPolicy
from controlplane.persistence.leases import hold_leader_lease
from tests import factories
from tests.factories import usage

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


@pytest.fixture
def busy() -> tuple[Team, Queue]:
    """A node of four cards, all allocated since an hour ago, and past runs of two hours."""
    team, queue = factories.team(), factories.queue()
    factories.cluster(cards=4)
    now = timezone.now()
    past = usage.holding(since=now - timedelta(hours=3), queue=queue, team=team, cards=4)
    usage.release(past, at=now - timedelta(hours=1))
    usage.holding(since=now - timedelta(hours=1), queue=queue, team=team, cards=4)
    return team, queue


def forecast(at: datetime, *, worked: timedelta = timedelta(seconds=1)) -> int:
    return forecasts_refresh(policy=SchedulingPolicy(), at=at, clock=lambda: at + worked)


def test_a_start_is_predicted_from_past_runtimes(busy: tuple[Team, Queue]) -> None:
    team, queue = busy
    claim = usage.waiting(queue=queue, team=team, cards=4)
    at = timezone.now()
    assert forecast(at) == 1
    stored_forecast = ClaimForecast.objects.get(claim=claim)
    assert stored_forecast.starts_at is not None
    assert abs(stored_forecast.starts_at - (at + timedelta(hours=1))) < 2 * MINUTE
    assert stored_forecast.blocked_by == [Claim.objects.get(state="admitted").uid]


def test_the_pause_is_ten_times_the_duration_of_the_run(busy: tuple[Team, Queue]) -> None:
    team, queue = busy
    usage.waiting(queue=queue, team=team, cards=4)
    at, worked = timezone.now(), timedelta(seconds=12)
    forecast(at, worked=worked)
    end = at + worked
    assert pause_after_forecast(worked) == timedelta(seconds=120)
    forecast(end + timedelta(seconds=119))
    assert ForecastRun.objects.count() == 1
    forecast(end + timedelta(seconds=121))
    assert ForecastRun.objects.count() == 2
    assert pause_after_forecast(timedelta(seconds=1)) == MIN_PAUSE


def test_only_one_forecast_runs_at_a_time(busy: tuple[Team, Queue]) -> None:
    team, queue = busy
    usage.waiting(queue=queue, team=team, cards=4)
    with hold_leader_lease(FORECAST_LEASE, ttl=MINUTE) as held:
        assert held is not None
        assert forecast(timezone.now()) == 0
    assert forecast(timezone.now()) == 1


def test_forecasts_of_admitted_claims_are_deleted(busy: tuple[Team, Queue]) -> None:
    team, queue = busy
    first = usage.waiting(queue=queue, team=team, cards=4)
    second = usage.waiting(queue=queue, team=team, cards=4)
    at = timezone.now()
    assert forecast(at) == 2
    usage.release(Claim.objects.get(state="admitted"), at=at)
    usage.admit(first, at=at)
    assert forecast(at + 3 * MINUTE) == 1
    assert ClaimForecast.objects.get().claim == second
    assert ClaimForecast.objects.get().place == 1


def test_only_the_first_claims_of_a_long_queue_are_considered(
    busy: tuple[Team, Queue], monkeypatch: pytest.MonkeyPatch
) -> None:
    team, queue = busy
    monkeypatch.setattr(forecasts, "MAX_PER_QUEUE", 2)
    claims = [usage.waiting(queue=queue, team=team, cards=4) for _ in range(4)]
    assert forecast(timezone.now()) == 2
    run = ForecastRun.objects.get()
    assert (run.waiting, run.looked_at) == (4, 2)
    considered = ClaimForecast.objects.order_by("place").values_list("claim__uid", flat=True)
    assert list(considered) == [claim.uid for claim in claims[:2]]


def test_fewer_claims_are_considered_after_a_slow_run(
    busy: tuple[Team, Queue], monkeypatch: pytest.MonkeyPatch
) -> None:
    team, queue = busy
    monkeypatch.setattr("apps.quotas.reconcilers.forecasts.MIN_CONSIDERED", 1)
    for _ in range(4):
        usage.waiting(queue=queue, team=team, cards=4)
    at = timezone.now()
    assert forecast(at, worked=MINUTE) == 4
    assert forecast(at + 12 * MINUTE) == 2


def test_arrivals_are_expected_as_in_the_last_day(busy: tuple[Team, Queue]) -> None:
    team, queue = busy
    came = usage.waiting(queue=queue, team=team, cards=2)
    again = usage.waiting(queue=queue, team=team, cards=2)
    at = timezone.now()
    Claim.objects.filter(pk=again.pk).update(in_line_since=at)
    expected = {claim.uid: claim for claim in forecasts.forecast_assumptions(at, claims=2).arrivals}
    assert f"tomorrow-{came.uid}" in expected
    # It took up revoked work: it did not come from outside.
    assert f"tomorrow-{again.uid}" not in expected
    assert expected[f"tomorrow-{came.uid}"].created_at == came.created_at + timedelta(days=1)
