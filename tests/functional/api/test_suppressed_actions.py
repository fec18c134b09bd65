"""What the guard holds back, and the acts on all of it, by REST."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from apps.fleet.models import Card, Node
from apps.monitoring.models import Fault, HealthPolicy
from apps.monitoring.reconcilers.health import health_reconcile
from apps.monitoring.services.faults import signals_record
from controlplane.domain.common.accelerators import CardState
from tests.functional.api.callers import API, problem, wrong_fields
from tests.integration.company import Company
from tests.integration.monitoring.wards import sign

pytestmark = pytest.mark.django_db


@pytest.fixture
def held(company: Company) -> dict[str, Any]:
    """What names the pool: two cards wait there, for rules may not act."""
    HealthPolicy.objects.create(automatic=False, changed_at=company.at)
    where: dict[str, Any] = {
        "node": Node.objects.get(cluster=company.cluster_row).name,
        "at": company.at,
    }
    signals = [sign(company.cluster_row, index=index, **where) for index in (0, 1)]
    signals_record(signals=signals, at=company.at)
    health_reconcile(at=company.at)
    return {"cluster": company.cluster_row.uid, "chip": Card.objects.get(index=0).chip}


def _post(client: APIClient, path: str, body: dict[str, Any]) -> Any:
    return client.post(f"{API}/held-back/{path}", body, format="json")


def _isolated() -> int:
    return Card.objects.filter(state=CardState.ISOLATED).count()


def test_a_dry_run_tells_the_numbers_of_the_list_and_the_act_is_done_once(
    operator: APIClient, viewer: APIClient, held: dict[str, Any]
) -> None:
    (pool,) = viewer.get(f"{API}/held-back").json()["pools"]
    assert (pool["isolations"], pool["nodes"], pool["cards"], pool["works"]) == (2, 1, 2, 0)
    assert pool["codes"] == [{"name": "79", "isolations": 2}]
    assert pool["left"] == pool["usable"] - 2
    body = {**held, "until": pool["until"], "shown": pool["isolations"]}
    dry = _post(operator, "isolate", {**body, "dry_run": True})
    assert dry.json() == {"pool": pool, "done": 0, "left_out": 0}
    assert _isolated() == 0
    request = {**body, "reason": "bad batch"}
    assert _post(operator, "isolate", request).json() == {"pool": pool, "done": 2, "left_out": 0}
    assert _isolated() == 2
    assert _post(operator, "isolate", request).json() == {"pool": None, "done": 0, "left_out": 2}
    assert viewer.get(f"{API}/held-back").json() == {"pools": []}


def test_leaving_acknowledges_the_faults(operator: APIClient, held: dict[str, Any]) -> None:
    answer = _post(operator, "leave", {**held, "reason": "firmware"}).json()
    assert (answer["done"], answer["left_out"]) == (2, 0)
    assert Fault.objects.filter(note="firmware").count() == 2
    assert _isolated() == 0


def test_others_look_and_do_not_act(engineer: APIClient, held: dict[str, Any]) -> None:
    for path in ("isolate", "leave"):
        for beside in ({"reason": "no"}, {"dry_run": True}):
            problem(_post(engineer, path, {**held, **beside}), 403, "permission-refused")
    assert _isolated() == 0


def test_what_is_wrong_with_a_request_is_named(operator: APIClient, held: dict[str, Any]) -> None:
    refusal = problem(_post(operator, "isolate", held), 422, "isolation-refused")
    assert refusal["detail"].startswith("enter a reason")
    assert wrong_fields(_post(operator, "leave", {"all": True})).keys() >= {"all"}
