"""Claims by REST: explanation, forecast, what-if and reclaim preview."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from apps.quotas.models import Claim, Queue, WhatIf
from apps.quotas.reconcilers import forecasts_refresh, what_ifs_reconcile
from controlplane.domain.common.permissions import Scope
from controlplane.domain.scheduling.plans import SchedulingPolicy
from tests import factories
from tests.factories import usage
from tests.functional.api.callers import API, caller, problem, wrong_fields

pytestmark = pytest.mark.django_db


@pytest.fixture
def waiting() -> Claim:
    """A pending claim for four of four cards, two of which are allocated."""
    team, queue = factories.team(), factories.queue()
    factories.cluster(cards=4)
    since = timezone.now() - timedelta(hours=1)
    usage.holding(since=since, queue=queue, team=team, cards=2, name="holder")
    claim = usage.waiting(queue=queue, team=team, cards=4)
    factories.schedule()
    return claim


@pytest.fixture
def client(waiting: Claim) -> APIClient:
    return caller(factories.user("ada", team=waiting.team), Scope.JOBS)


def found(client: APIClient, path: str) -> Any:
    answer = client.get(f"{API}/{path}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_an_explanation_has_numbers_and_the_queue(client: APIClient, waiting: Claim) -> None:
    explanation = found(client, f"claims/{waiting.uid}/explanation")
    assert explanation["numbers"]["wanted"] == 4
    assert (explanation["place"], explanation["waiting"]) == (1, 1)
    assert explanation["free"] == {"cpu": 2}
    assert explanation["shares"][0]["standing"]["used"] == 2
    assert explanation["forecast"] is None


def test_a_forecast_is_empty_before_the_first_run(client: APIClient, waiting: Claim) -> None:
    assert found(client, f"claims/{waiting.uid}/forecast")["created_at"] is None
    now = timezone.now()
    past = usage.waiting(queue=waiting.queue, team=waiting.team, cards=2)
    usage.admit(past, at=now - timedelta(hours=2))
    usage.release(past, at=now)
    forecasts_refresh(policy=SchedulingPolicy(), at=now)
    forecast = found(client, f"claims/{waiting.uid}/forecast")
    assert forecast["starts_at"] is not None
    assert forecast["place"] == 1
    assert forecast["blocked_by"][0]["name"] == "holder"


def test_a_what_if_is_stored_and_computed(client: APIClient, waiting: Claim) -> None:
    node = Claim.objects.get(state="admitted").placement[0]["node"]
    answer = client.post(
        f"{API}/claims/{waiting.uid}/what-if",
        {"more_nodes": {"like": node, "nodes": 1}},
        format="json",
    )
    assert answer.status_code == 202
    uid = answer.json()["asked"]["uid"]
    assert answer.json()["answer"] is None
    what_ifs_reconcile(policy=SchedulingPolicy(), at=timezone.now())
    what_if = found(client, f"what-ifs/{uid}")
    assert what_if["answer"]["own"]["after"]["starts_at"] is not None
    assert what_if["asked"]["state"] == "answered"


def test_a_what_if_about_an_admitted_claim_is_refused(client: APIClient, waiting: Claim) -> None:
    running = Claim.objects.get(state="admitted")
    answer = client.post(f"{API}/claims/{running.uid}/what-if", {"priority": 5}, format="json")
    assert "is no longer pending" in problem(answer, 422, "refused")["detail"]
    assert not WhatIf.objects.exists()


def test_a_what_if_without_changes_is_refused(client: APIClient, waiting: Claim) -> None:
    answer = client.post(f"{API}/claims/{waiting.uid}/what-if", {}, format="json")
    assert "has no changes" in problem(answer, 422, "refused")["detail"]


def test_a_reclaim_preview_lists_victims(client: APIClient, waiting: Claim) -> None:
    Claim.objects.filter(state="admitted").update(preemptible=True)
    guaranteed = Queue.objects.create(name="owed", team=waiting.team)
    guaranteed.entitlements.create(chip="cpu", guaranteed=4)
    preview = found(client, f"queues/{guaranteed.uid}/reclaim-preview?chip=cpu&cards=4&together=4")
    assert (preview["starts"], preview["cards"]) == (False, 2)
    assert preview["losers"][0]["work"]["name"] == "holder"
    assert preview["losers"][0]["queue"] == "default"


def test_cards_that_do_not_divide_are_refused(client: APIClient, waiting: Claim) -> None:
    asked = f"{API}/queues/{waiting.queue.uid}/reclaim-preview?chip=cpu&cards=3&together=2"
    assert "multiple of 2" in wrong_fields(client.get(asked))["cards"]


def test_a_claim_of_another_team_is_not_found(waiting: Claim) -> None:
    stranger = caller(factories.user("bob", team=factories.team("search")))
    for path in ("why", "forecast"):
        assert stranger.get(f"{API}/claims/{waiting.uid}/{path}").status_code == 404
