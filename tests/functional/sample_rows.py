"""A small company to look at: a team, one kind of card, something in every state that a page shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apps.accounts.models import Team, User
from apps.fleet.models import Card, Cluster
from apps.jobs.models import Job
from apps.models.models import DatasetVersion, ModelVersion
from apps.quotas.models import Queue
from apps.serving.models import ApiKey, Deployment
from apps.workflows.models import Pipeline
from controlplane.domain.jobs.lifecycle import JobKind
from tests import factories


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyCompany:
    """People and a queue, and nothing made yet."""

    team: Team
    user: User
    queue: Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledCompany:
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


def empty_company(team: Team) -> EmptyCompany:
    """An engineer of the team, and a queue."""
    return EmptyCompany(team=team, user=factories.user(team=team), queue=factories.queue())


def fill(empty: EmptyCompany | None = None) -> FilledCompany:
    """Something in every state that a page shows."""
    empty = empty or empty_company(factories.team("maps"))
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
    factories.card_metrics([card])
    factories.fault(card)
    return FilledCompany(
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
