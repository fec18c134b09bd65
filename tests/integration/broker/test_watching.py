"""What the status page says of a real worker and beat, and of their deaths."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.models import User
from config.celery import app
from controlplane.domain.health.controllers import SHORTEST_ALLOWED
from controlplane.persistence.models import ControllerState
from tests.contract.waiting import until
from tests.integration.broker.controllers import PATIENCE
from tests.integration.broker.products import Product

pytestmark = [pytest.mark.parametrize("broker", ["folder_broker"], indirect=True), pytest.mark.slow]

#: A loop is late after what is allowed; the rest is this machine's own slowness.
BOUND = SHORTEST_ALLOWED.total_seconds() + 10.0
QUICK = "apps.quotas.tasks.run_cycle"


@pytest.fixture
def operator(
    product: Product, client: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Client:
    """Logged in as somebody who may see how the product does, on the product's own broker."""
    monkeypatch.setitem(
        app.conf, "broker_transport_options", {**product.broker.options, "polling_interval": 0.1}
    )
    client.force_login(
        User.objects.create_user("olga", password="open sesame", is_staff=True, is_superuser=True)
    )
    return client


def conditions(client: Client) -> dict[str, str]:
    return {one["kind"]: one["condition"] for one in status(client)["components"]}


def status(client: Client) -> dict[str, Any]:
    answer: dict[str, Any] = client.get("/api/v1/status").json()
    return answer


def wait_for(client: Client, kind: str, condition: str, *, within: float = PATIENCE) -> None:
    """Return once the page says so of that part.

    :raises AssertionError: if it does not in time; with what the page says of the loops instead.
    """
    try:
        until(
            lambda: conditions(client)[kind] == condition,
            within=within,
            what=f"{kind} is {condition}",
        )
    except AssertionError as late:
        for controller in status(client)["controllers"]:
            late.add_note(
                f"{controller['name']}: {controller['health']} {controller['lag_seconds']} {controller['error']}"
            )
        raise


def test_every_controller_run_is_recorded_by_its_worker(product: Product, operator: Client) -> None:
    product.worker.start()
    product.beat.start()

    until(
        lambda: (
            ControllerState.objects.filter(succeeded_at__isnull=False, runs__gte=2).count() >= 5
        ),
        within=PATIENCE,
        what="five loops have turned twice",
    )

    for row in ControllerState.objects.filter(runs__gte=2):
        assert row.failed_runs == 0, row.error
        assert 0 < row.seconds < 60
        assert 2 <= len(row.recent) <= row.runs + 1
    assert ControllerState.objects.get(name=QUICK).handled == 0
    wait_for(operator, "worker", "well")


def test_a_killed_worker_is_missed_within_its_bound_and_its_return_is_seen(
    product: Product, operator: Client
) -> None:
    product.beat.start()
    product.worker.start()
    wait_for(operator, "worker", "well")

    product.worker.kill()
    killed_at = timezone.now()

    wait_for(operator, "worker", "down", within=BOUND)
    assert (timezone.now() - killed_at) > SHORTEST_ALLOWED / 2
    assert conditions(operator)["beat"] == "well"
    page = operator.get("/status").text
    assert "not processing:" in page
    assert "var/logs/worker.log" in page

    product.worker.start()
    wait_for(operator, "worker", "well")


def test_a_killed_beat_is_told_from_a_killed_worker(product: Product, operator: Client) -> None:
    product.beat.start()
    product.worker.start()
    wait_for(operator, "beat", "well")

    product.beat.kill()

    wait_for(operator, "beat", "down", within=BOUND)
    assert conditions(operator)["worker"] == "unknown"


def test_json_log_lines_of_a_task_have_its_name_and_id(
    product: Product,
) -> None:
    product.worker.set_variable("NINEFOLD_LOG_FORMAT", "json")
    product.beat.start()
    product.worker.start()
    product.worker.says(
        r'"message": "Task \S+\[\S+\] succeeded in [^\n]*"task": "[\w.]+", "task_id": "'
    )
