"""A small company to look at: two teams, one card kind, a bit of everything."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from apps.accounts.models import Team, User
from apps.fleet.models import Card, Cluster
from apps.jobs.models import Job
from apps.models.models import DatasetVersion, ModelVersion
from apps.quotas.models import Queue
from apps.serving.models import ApiKey, Deployment
from apps.workflows.models import Pipeline
from controlplane.domain.jobs import JobKind
from controlplane.domain.permissions import Role
from tests import factories


@dataclass(frozen=True, slots=True, kw_only=True)
class Empty:
    """People and a queue, and nothing made yet."""

    team: Team
    user: User
    queue: Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    team: Team
    user: User
    queue: Queue
    cluster: Cluster
    card: Card
    dataset: DatasetVersion
    base: ModelVersion
    tuned: ModelVersion
    waiting: Job
    running: Job
    failed: Job
    succeeded: Job
    script: Job
    ready: Deployment
    degraded: Deployment
    pipeline: Pipeline
    held: Pipeline
    key: ApiKey


@pytest.fixture(autouse=True, scope="session")
def static_folder() -> None:
    """Whitenoise warns where collected files would lie and nothing does."""
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)


@pytest.fixture
def team(db: None) -> Team:
    return factories.team("maps")


@pytest.fixture
def empty(team: Team) -> Empty:
    return Empty(team=team, user=factories.person(team=team), queue=factories.queue())


@pytest.fixture
def filled(empty: Empty) -> Filled:
    return fill(empty)


def fill(empty: Empty) -> Filled:
    """Something in every state that a page shows."""
    team, user, queue = empty.team, empty.user, empty.queue
    own: dict[str, Any] = {"actor": user, "team": team}
    cluster = factories.cluster(cards=5)
    dataset = factories.dataset_version(**own)
    base = factories.model_version(**own)
    work: dict[str, Any] = {**own, "queue": queue, "model": base, "dataset": dataset}
    succeeded = factories.job(**work, name="went well")
    tuned = factories.succeeded(succeeded, cluster=cluster)
    assert tuned is not None
    script = factories.job(**own, queue=queue, kind=JobKind.SCRIPT, name="count lines")
    factories.succeeded(script, cluster=cluster)
    failed = factories.job(**work, name="ran out of disk")
    factories.failed(failed, cluster=cluster)
    running = factories.job(**work, name="teach addresses")
    factories.running(running, cluster=cluster)
    ready = factories.deployment(**own, queue=queue, model=tuned, name="parcels")
    factories.replica(ready, cluster=cluster)
    degraded = factories.deployment(**own, queue=queue, model=base, name="shaky")
    factories.replica(degraded, cluster=cluster, ready=False)
    waiting = factories.job(**work, name="needs many", cards=4)
    factories.schedule()
    factories.evaluation(model=base, dataset=dataset, exact_match=0.01, actor=user)
    factories.evaluation(model=tuned, dataset=dataset, exact_match=0.75, actor=user)
    whole: dict[str, Any] = {**work, "model": base}
    pipeline = factories.pipeline(**whole, name="the whole way")
    held = factories.pipeline(**whole, name="not good enough", state="held")
    key, _text = factories.api_key(**own)
    card = Card.objects.filter(node__cluster=cluster).order_by("index")[0]
    factories.figures([card])
    factories.fault(card)
    return Filled(
        team=team,
        user=user,
        queue=queue,
        cluster=cluster,
        card=card,
        dataset=dataset,
        base=base,
        tuned=tuned,
        waiting=waiting,
        running=running,
        failed=failed,
        succeeded=succeeded,
        script=script,
        ready=ready,
        degraded=degraded,
        pipeline=pipeline,
        held=held,
        key=key,
    )


@pytest.fixture
def browser(client: Client, empty: Empty) -> Client:
    """Logged in as an engineer of the team."""
    client.force_login(empty.user)
    return client


@pytest.fixture
def outsider(empty: Empty) -> Client:
    """Logged in as an engineer of another team."""
    client = Client()
    client.force_login(factories.person("bob", team=factories.team("search")))
    return client


def logged_in(name: str, *, team: Team, role: Role = Role.VIEWER, operator: bool = False) -> Client:
    """Logged in as somebody new in the team, who by default may only look."""
    client = Client()
    client.force_login(factories.person(name, team=team, role=role, operator=operator))
    return client


@pytest.fixture
def viewer(team: Team) -> Client:
    """Logged in as somebody who may only look."""
    return logged_in("vera", team=team)


@pytest.fixture
def operator(team: Team) -> Client:
    """Logged in as somebody who operates the fleet."""
    return logged_in("otto", team=team, role=Role.VIEWER, operator=True)


@pytest.fixture
def cluster(db: None) -> Cluster:
    """One node of four cards."""
    return factories.cluster(cards=4)
