"""The commands for simulated clusters, and the first hour of the demonstration."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from apps.fleet.models import Card, Cluster, Node
from apps.jobs.models import Attempt, Job
from apps.quotas.models import Allocation, Claim, Queue
from config import simulated_clusters
from controlplane.domain.common.topology import network_domains

pytestmark = pytest.mark.django_db

DESCRIPTION = """
[[groups]]
name = "h800"
chip = "nvidia-h800"
nodes = 4
levels = { leaf = 2, spine = 4 }
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, settings: Settings) -> Path:
    settings.NINEFOLD_HOME = tmp_path
    return tmp_path


def said(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def paper(home: Path) -> str:
    (home / "fleet.toml").write_text(DESCRIPTION)
    said("simulate", "create", "paper", str(home / "fleet.toml"), "--speed", "60")
    return "paper"


def test_a_file_becomes_a_cluster_with_cards_and_places(paper: str) -> None:
    assert Card.objects.filter(node__cluster__name=paper, chip="nvidia-h800").count() == 32
    labels = Node.objects.get(name="h800-3").labels
    assert network_domains(labels) == {"spine": "h800-spine", "leaf": "h800-leaf-2"}


def test_creating_it_again_leaves_it_as_it_is(paper: str, home: Path) -> None:
    before = Cluster.objects.get(name=paper).options
    said("simulate", "create", paper, str(home / "fleet.toml"))
    assert Cluster.objects.get(name=paper).options == before


def test_faults_show_in_the_fleet_at_once(paper: str) -> None:
    said("simulate", "kill", paper, "h800-2/5")
    said("simulate", "silence", paper, "h800-3")
    assert Card.objects.get(state="unknown").index == 5
    assert Node.objects.get(ready=False).name == "h800-3"
    assert "card 5 of h800-2: uncorrectable memory error" in said("simulate", "list")
    said("simulate", "recover", paper, "h800-2/5")
    said("simulate", "recover", paper, "h800-3")
    assert "paper: nothing broken" in said("simulate", "list")
    assert not Card.objects.exclude(state="usable").exists()


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("kill", "paper", "h800-2"), "kill needs a card, such as h800-2/0"),
        (("kill", "paper", "h800-2/x"), "a card is named NODE/NUMBER"),
        (("kill", "paper", "h900-2/0"), "node 'h900-2' does not exist; the cluster has 4 nodes"),
        (("silence", "rock", "h800-2"), "no simulated cluster is called 'rock'; there are: paper"),
    ],
)
def test_what_cannot_be_done_is_told(paper: str, arguments: tuple[str, ...], answer: str) -> None:
    with pytest.raises(CommandError, match=answer):
        said("simulate", *arguments)


def test_a_real_clusters_name_is_not_taken(home: Path) -> None:
    Cluster.objects.create(name="paper", kind="local")
    (home / "fleet.toml").write_text(DESCRIPTION)
    with pytest.raises(CommandError, match="paper is a cluster of kind local"):
        said("simulate", "create", "paper", str(home / "fleet.toml"))


@pytest.mark.slow
def test_an_hour_of_the_demonstration_keeps_every_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NINEFOLD_ADMIN_PASSWORD", "open sesame")
    said("demo", "make", "--hours", "1")
    assert Card.objects.count() == 2048
    jobs = Job.objects.count()
    assert jobs > 5
    assert Attempt.objects.filter(state="running").exists()
    for claim in Claim.objects.all():
        held = claim.allocations.filter(released_at=None).count()
        assert held == (claim.card_count if claim.state == "admitted" else 0)
    for queue in Queue.objects.all():
        for stated in queue.entitlements.exclude(cap=None):
            used = Allocation.objects.filter(
                claim__queue=queue, card__chip=stated.chip, released_at=None
            ).count()
            assert used <= (stated.cap or 0)
    assert all(cluster.frozen_at() is None for _, cluster in simulated_clusters.all_clusters())
    assert "it goes on from here" in said("demo", "make")
    assert Job.objects.count() == jobs
