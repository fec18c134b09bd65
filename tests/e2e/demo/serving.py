"""Deployments in each state, with revisions, replicas, keys and a month of calls."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from apps.accounts.models import Team, User
from apps.fleet.models import Node
from apps.models.models import ModelVersion
from apps.quotas.models import Claim, Queue
from apps.quotas.reconcilers import cycle_run
from apps.quotas.services import claim_release
from apps.serving.models import ApiKey, Backend, Deployment, Replica
from apps.serving.selectors.revision_configurations import RevisionConfiguration
from apps.serving.services import deployments as services
from apps.serving.services.gateways import api_key_create, api_key_revoke, usage_batch_record
from apps.serving.services.rollouts import rollout_pause
from controlplane.domain.quotas.claims import ReleaseReason
from controlplane.domain.scheduling.plans import SchedulingPolicy
from controlplane.domain.serving.lifecycle import (
    DeploymentEvent,
    ReplicaEvent,
    ReplicaState,
    WeightDownloadState,
)
from tests.e2e.demo.clock import NOW, ago, before
from tests.e2e.demo.fleet import Fleet
from tests.e2e.demo.jobs import Jobs
from tests.e2e.demo.reasons import sample_reason
from tests.e2e.demo.registry import Registry
from tests.e2e.demo.users import Users
from tests.factories import weight_download

DAYS_OF_USAGE = 21
CALLS_A_DAY = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    ready: Deployment
    degraded: Deployment
    starting: Deployment
    #: In the middle of a rollout to its second revision.
    paused: Deployment
    stopped: Deployment
    #: Of Search.
    theirs: Deployment
    key: ApiKey


def serving(users: Users, fleet: Fleet, known: Registry, jobs: Jobs) -> Serving:
    maps: dict[str, Any] = {"actor": users.ada, "team": users.maps, "queue": fleet.default}
    with ago(days=30):
        ready = _deployment(**maps, name="address-parser", model=known.base, replicas=2)
        _ready(ready, fleet, days=30)
    _revise(ready, jobs.tuned, users.ada, fleet)
    with ago(days=3):
        degraded = _deployment(**maps, name="address-parser-beta", model=jobs.tuned, replicas=2)
        _crashing(degraded, fleet)
    with ago(days=50):
        stopped = _deployment(**maps, name="address-parser-old", model=known.other_base)
        _ready(stopped, fleet, days=50)
    _stop(stopped, users.ada)
    with ago(days=11):
        theirs = _deployment(
            actor=users.noor,
            team=users.search,
            queue=fleet.default,
            name="query-rewriter",
            model=jobs.theirs_tuned,
        )
        _ready(theirs, fleet, days=11)
    with ago(minutes=1):
        starting = _deployment(**maps, name="address-parser-next", model=jobs.tuned)
        services.replica_create(backend=_newest(starting), deployment=starting)
    with ago(days=2):
        paused = _deployment(**maps, name="address-parser-large", model=known.base, replicas=2)
        _ready(paused, fleet, days=2)
    _pause(paused, jobs.tuned, users.ada, fleet)
    _weights(users, fleet, jobs.tuned)
    key = _keys(users)
    _usage(key, ready)
    return Serving(
        ready=ready,
        degraded=degraded,
        starting=starting,
        paused=paused,
        stopped=stopped,
        theirs=theirs,
        key=key,
    )


def _deployment(
    *, actor: User, team: Team, queue: Queue, name: str, model: ModelVersion, replicas: int = 1
) -> Deployment:
    return services.deployment_create(
        actor=actor,
        team=team,
        name=name,
        configuration=RevisionConfiguration(model_version=model),
        queue=queue,
        replicas=replicas,
    )


def _newest(deployment: Deployment) -> Backend:
    return Backend.objects.filter(revision__deployment=deployment).latest("id")


def _replica(
    deployment: Deployment, fleet: Fleet, *, at_days: float, ready: bool = True
) -> Replica:
    row = services.replica_create(backend=_newest(deployment), deployment=deployment)
    at = before(days=at_days)
    cycle_run(policy=SchedulingPolicy(), at=at)
    claim = Claim.objects.get(uid=row.claim_uid)
    Replica.objects.filter(pk=row.pk).update(cluster=fleet.cluster, chip="cpu")
    row.refresh_from_db()
    services.replica_transition(row, ReplicaEvent.ADMIT, at=at, reason=claim.explanation)
    services.replica_transition(
        row,
        ReplicaEvent.LAUNCH,
        at=at + timedelta(seconds=5),
        reason=sample_reason("attempt.stage.loading_simulated"),
    )
    if ready:
        at += timedelta(seconds=70)
        services.replica_transition(
            row,
            ReplicaEvent.BECOME_READY,
            at=at,
            reason=sample_reason("replica.state.ready"),
            url="http://127.0.0.1:9",
            ready_at=at,
        )
    return row


def _ready(deployment: Deployment, fleet: Fleet, *, days: float) -> None:
    for _ in range(deployment.replica_count):
        _replica(deployment, fleet, at_days=days)
    count = deployment.replica_count
    deployment.refresh_from_db()
    services.deployment_transition(
        deployment,
        DeploymentEvent.BECOME_READY,
        at=before(days=days) + timedelta(seconds=75),
        reason=sample_reason("deployment.state.replicas_ready", ready=count, replicas=count),
    )


def _revise(deployment: Deployment, model: ModelVersion, actor: User, fleet: Fleet) -> None:
    """The better model takes over five days ago."""
    old = list(Replica.objects.filter(backend__revision__deployment=deployment))
    with ago(days=5) as at:
        services.deployment_revise(
            deployment=deployment,
            configuration=RevisionConfiguration(model_version=model),
            actor=actor,
            at=at,
        )
        for _ in old:
            _replica(deployment, fleet, at_days=5)
        services.traffic_shift(deployment=deployment, backend=_newest(deployment))
        _end_replicas(
            old, reason=sample_reason("replica.stop.revision_replaced", revision=2), days=5
        )
        deployment.refresh_from_db()
        services.deployment_transition(
            deployment,
            DeploymentEvent.BECOME_READY,
            at=at,
            reason=sample_reason("deployment.state.replicas_ready", ready=2, replicas=2),
        )


def _pause(deployment: Deployment, model: ModelVersion, actor: User, fleet: Fleet) -> None:
    """One replica of the new revision is ready when somebody pauses its rollout."""
    with ago(minutes=50) as at:
        services.deployment_revise(
            deployment=deployment,
            configuration=RevisionConfiguration(model_version=model),
            actor=actor,
            at=at,
        )
        _replica(deployment, fleet, at_days=0.03)
    with ago(minutes=40) as at:
        rollout_pause(deployment=deployment, actor=actor, at=at)
    deployment.refresh_from_db()


def _end_replicas(rows: list[Replica], *, reason: str, days: float) -> None:
    at = before(days=days)
    services.replicas_stop(replicas=rows, reason=ReleaseReason.FINISHED, message=reason, at=at)
    for row in rows:
        if row.state == ReplicaState.DRAINING:
            services.replica_transition(row, ReplicaEvent.STOP, at=at, reason=reason)
        services.replica_transition(row, ReplicaEvent.CONFIRM, at=at, reason=reason)
        claim_release(uid=row.claim_uid, reason=ReleaseReason.FINISHED, at=at)


def _crashing(deployment: Deployment, fleet: Fleet) -> None:
    _replica(deployment, fleet, at_days=3)
    row = _replica(deployment, fleet, at_days=3, ready=False)
    services.replica_transition(
        row,
        ReplicaEvent.CRASH,
        at=before(minutes=2),
        reason=sample_reason(
            "replica.state.crashed",
            reason=sample_reason("attempt.exit.failed", exit_code=1),
            seconds=300,
            crashes=6,
        ),
        crashes=6,
        restart_at=NOW + timedelta(minutes=3),
        log_tail="Loading weights\nRuntimeError: out of memory: tried to allocate 1.2 GiB",
    )
    deployment.refresh_from_db()
    services.deployment_transition(
        deployment,
        DeploymentEvent.DEGRADE,
        at=before(minutes=2),
        reason=sample_reason("deployment.state.replicas_ready", ready=1, replicas=2),
    )


def _stop(deployment: Deployment, actor: User) -> None:
    with ago(days=14) as at:
        services.deployment_stop(deployment=deployment, actor=actor, at=at)
        rows = list(Replica.objects.filter(backend__revision__deployment=deployment))
        _end_replicas(rows, reason=sample_reason("replica.stop.deployment_stopping"), days=14)
        deployment.refresh_from_db()
        services.deployment_transition(
            deployment,
            DeploymentEvent.CONFIRM,
            at=at,
            reason=sample_reason("transition.by_user.stopped", user=actor.username),
        )


def _weights(users: Users, fleet: Fleet, model: ModelVersion) -> None:
    """Pre-downloads of a model version to four nodes, one in each state that a page shows."""
    states: tuple[tuple[WeightDownloadState, str, float], ...] = (
        (WeightDownloadState.SUCCEEDED, "", 1.0),
        (WeightDownloadState.RUNNING, "", 0.4),
        (
            WeightDownloadState.FAILED,
            sample_reason("launch.input.download_failed"),
            0.2,
        ),
        (WeightDownloadState.CANCELLED, sample_reason("weights.state.cancelled", user="ada"), 0.1),
    )
    nodes = Node.objects.filter(cluster=fleet.gpus).order_by("name")
    for node, (state, message, share) in zip(nodes, states, strict=True):
        with ago(minutes=20):
            row = weight_download(
                actor=users.ada, team=users.maps, model=model, cluster=fleet.gpus, node=node
            )
        row.state, row.message = state, message
        row.downloaded = int(row.size * share)
        row.ended_at = None if state is WeightDownloadState.RUNNING else before(minutes=5)
        row.save()


def _keys(users: Users) -> ApiKey:
    own: dict[str, Any] = {"actor": users.ada, "team": users.maps}
    with ago(days=29) as at:
        key, _text = api_key_create(
            **own, name="parcel routing", at=at, requests_per_minute=600, tokens_per_minute=200_000
        )
        api_key_create(**own, name="trial of last month", at=at, expires_at=before(days=2))
        leaked, _text = api_key_create(**own, name="pasted in a chat", at=at)
    with ago(days=13) as at:
        api_key_revoke(key=leaked, actor=users.wei, at=at)
    with ago(days=10) as at:
        api_key_create(
            **own,
            name="dashboard",
            at=at,
            routes=["address-parser"],
            concurrency=4,
            expires_at=before(days=-80),
        )
        api_key_create(actor=users.noor, team=users.search, name="front page", at=at)
    return key


def _usage(key: ApiKey, deployment: Deployment) -> None:
    """More by day than by night, growing, and an hour of trouble."""
    chance = random.Random(3)
    backend = _newest(deployment).uid
    records = []
    for day in range(DAYS_OF_USAGE):
        for call in range(CALLS_A_DAY + 2 * day):
            hour = 24 * (0.5 + 0.5 * math.sin(chance.uniform(-1.2, 1.2)))
            at = NOW - timedelta(days=DAYS_OF_USAGE - 1 - day, hours=hour, seconds=call)
            broken = day == DAYS_OF_USAGE - 4 and call % 5 == 0
            tokens = chance.randint(12, 180)
            records.append(
                {
                    "key": key.uid,
                    "at": at.isoformat(),
                    "route": "address-parser",
                    "backend": backend,
                    "operation": "chat",
                    "status": 503 if broken else 200,
                    "outcome": "unavailable" if broken else "ok",
                    "prompt_tokens": chance.randint(20, 90),
                    "completion_tokens": 0 if broken else tokens,
                    "duration_ms": 12.0 if broken else 60 + tokens * chance.uniform(7, 11),
                    "first_token_ms": None if broken else chance.lognormvariate(4.3, 0.4),
                }
            )
    usage_batch_record(gateway="gateway-1", sequence=1, records=records)
