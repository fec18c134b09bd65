"""Pages of rollouts: a new one, how far it is, and what people can do about it."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apps.fleet.models import Cluster
from apps.monitoring.models import Rollout
from apps.monitoring.reconcilers.maintenance_rollouts import maintenance_rollouts_reconcile
from tests import factories
from tests.cases import for_each_case

_AT = "/fleet/rollouts"


@pytest.fixture
def operator(db: None) -> Client:
    client = Client()
    client.force_login(factories.user("root", admin=True))
    return client


@pytest.fixture
def cluster(operator: Client) -> Cluster:
    return factories.cluster(kind="simulated")


def text_of(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return answer.content.decode()


def form_of(cluster: Cluster, **changes: str) -> dict[str, str]:
    return {
        "name": "driver 580",
        "cluster": cluster.uid,
        "labels": "name=here-1",
        "command": "/usr/bin/update --to 'version 2'",
        "burn_in": "on",
        "parallel": "1",
        "run_within": "600",
        **changes,
    }


def test_a_rollout_is_begun_watched_paused_and_cancelled(
    operator: Client, cluster: Cluster
) -> None:
    assert "No maintenance rollouts" in text_of(operator, _AT)
    assert operator.post(f"{_AT}/new", form_of(cluster)).status_code == 302
    rollout = Rollout.objects.get()
    assert rollout.argv == ["/usr/bin/update", "--to", "version 2"]
    maintenance_rollouts_reconcile(at=timezone.now())
    page = text_of(operator, f"{_AT}/{rollout.uid}")
    assert "here-1" in page
    assert "evicting workloads with time to save a checkpoint" in page
    operator.post(f"{_AT}/{rollout.uid}/pause")
    assert "paused" in text_of(operator, f"{_AT}/{rollout.uid}")
    operator.post(f"{_AT}/{rollout.uid}/resume")
    operator.post(f"{_AT}/{rollout.uid}/cancel")
    rollout.refresh_from_db()
    assert rollout.state == "cancelled"
    operator.post(f"{_AT}/{rollout.uid}/resume")
    assert "cannot resume" in text_of(operator, f"{_AT}/{rollout.uid}")
    assert "driver 580" in text_of(operator, _AT)


@for_each_case(
    ("changes", "says"),
    [
        ({"labels": "rack"}, "Each line must have the form label=value."),
        (
            {"labels": "rack=none"},
            "the labels select 0 usable nodes; choose labels that select 1 to",
        ),
        ({"command": "update 'now"}, "The command has an unclosed quote."),
        ({"command": "", "burn_in": ""}, "a rollout requires a command, a burn-in, or both"),
    ],
)
def test_what_cannot_be_is_said_beside_its_field(
    operator: Client, cluster: Cluster, changes: dict[str, str], says: str
) -> None:
    answer = operator.post(f"{_AT}/new", form_of(cluster, **changes))
    assert (answer.status_code, says in answer.content.decode()) == (422, True)
    assert not Rollout.objects.exists()


def test_pages_of_rollouts_cost_the_same_however_many_nodes_there_are(
    operator: Client, cluster: Cluster, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    operator.post(f"{_AT}/new", form_of(cluster))
    for path in ("", f"/{Rollout.objects.get().uid}", "/new"):
        with django_assert_max_num_queries(10):
            operator.get(f"{_AT}{path}")
