"""Cards that are taken out of use and prove themselves, turn by turn."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from apps.fleet.models import Card, Node
from apps.monitoring.models import Isolation
from apps.monitoring.reconcilers.health import health_reconcile
from apps.monitoring.reconcilers.isolations import isolations_reconcile
from apps.monitoring.services.faults import signals_record
from controlplane.domain.health.isolations import IsolationState
from controlplane.ports import adapter_registry
from tests.integration.company import Company
from tests.integration.monitoring.wards import sign

SETTLED = timedelta(minutes=6)
ENGINE = adapter_registry.engine_by_name("transformers")


@pytest.fixture
def engine(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one whose environment the program runs in; jobs run by the plain one."""
    plain = adapter_registry.engine_by_name("plain")
    monkeypatch.setattr(
        adapter_registry, "engine_by_name", {"plain": plain, "transformers": ENGINE}.__getitem__
    )


def turn(company: Company, after: float = 2) -> None:
    """Rules decide, and what is out of use goes on, so many seconds later."""
    at = company.later(timedelta(seconds=after))
    health_reconcile(at=at)
    isolations_reconcile(at=at)


def isolated(company: Company, index: int = 0) -> Isolation:
    """A card that a rule took out, and whose fault is over."""
    row = company.cluster_row
    node = Node.objects.get(cluster=row).name
    signal = sign(row, node=node, index=index, at=company.at)
    signals_record(signals=[signal], at=company.at)
    turn(company)
    over = sign(row, node=node, index=index, at=company.at, active=False)
    signals_record(signals=[over], at=company.at)
    return Isolation.objects.get(card__index=index, ended_at=None)


def burning_in(company: Company) -> Isolation:
    """The same, once its burn-in runs."""
    row = isolated(company)
    turn(company)
    company.later(SETTLED)
    turn(company)
    row.refresh_from_db()
    assert row.state == IsolationState.TESTING
    return row


def burned_in(company: Company, row: Isolation, *, passed: bool) -> None:
    """Its burn-in ends with that result."""
    name = f"burnin-{row.uid}-{row.burn_ins}"
    company.cluster.run(name)
    company.cluster.write_log(name, _result(passed))
    company.cluster.finish(name, exit_code=0 if passed else 9)


def _result(passed: bool) -> bytes:
    verdict = "passed" if passed else "failed"
    tests = [
        {"test": "memory", "card": 0, "verdict": verdict, "message": "bit 3 of word 77 flipped"}
    ]
    return f"burn-in\nRESULT {json.dumps({'passed': passed, 'tests': tests})}\n".encode()


def card_at(index: int = 0) -> Card:
    """The card of that index on the only node."""
    return Card.objects.get(index=index)
