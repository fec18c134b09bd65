"""Preemption of the replicas of a deployment on borrowed cards, except one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from apps.jobs.services import SpecRefused
from apps.quotas import services as quotas
from apps.quotas.models import Claim, Queue
from apps.serving.services import deployments as services
from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.domain.quotas.claims import ClaimState, ReleaseReason
from controlplane.domain.quotas.queues import QueueState
from controlplane.domain.serving.lifecycle import (
    EVICTION_GRACE,
    STOP_GRACE,
    DeploymentState,
    ReplicaState,
)
from tests.integration.company import Company
from tests.integration.quotas.sharing import Sharing
from tests.integration.serving.deployments import ready_deployment, replicas_of, start_replicas


def claim_of(uid: str) -> Claim:
    return Claim.objects.get(owner_kind="replica", owner_uid=uid)


def test_an_evicted_replica_has_less_time_for_open_requests_than_one_that_is_stopped(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    graces: list[timedelta] = []
    stop = FakeCluster.stop

    def recorded(self: FakeCluster, name: str, *, grace: timedelta) -> None:
        graces.append(grace)
        stop(self, name, grace=grace)

    monkeypatch.setattr(FakeCluster, "stop", recorded)
    sharing = Sharing.of(company)
    deployment = ready_deployment(company, replicas=2)
    sharing.claim(sharing.lender)
    for _ in range(3):
        start_replicas(company)
    assert set(graces) == {EVICTION_GRACE}
    graces.clear()

    services.deployment_stop(deployment=deployment, actor=company.engineer, at=company.at)
    for _ in range(3):
        company.turn_deployments()
    assert set(graces) == {STOP_GRACE}
    assert STOP_GRACE > EVICTION_GRACE


def test_second_replica_is_preempted_and_replaced_by_a_pending_one(company: Company) -> None:
    sharing = Sharing.of(company)
    deployment = ready_deployment(company, replicas=2)
    first, second = replicas_of(deployment)
    assert [claim_of(each.uid).preemptible for each in (first, second)] == [False, True]
    assert claim_of(first.uid).work_name == "parser"
    owner = sharing.claim(sharing.lender)

    for _ in range(3):
        start_replicas(company)

    owner.refresh_from_db()
    deployment.refresh_from_db()
    assert owner.state == ClaimState.ADMITTED
    states = [replica.state for replica in replicas_of(deployment)]
    assert states == [ReplicaState.READY, ReplicaState.STOPPED, ReplicaState.PENDING]
    assert claim_of(second.uid).release_reason == ReleaseReason.PREEMPTED
    assert deployment.state == DeploymentState.DEGRADED

    quotas.claim_release(uid=owner.uid, reason=ReleaseReason.FINISHED, at=company.at)
    start_replicas(company)

    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.READY


def test_last_replica_is_not_preempted(company: Company) -> None:
    sharing = Sharing.of(company)
    deployment = ready_deployment(company, replicas=2)
    owner = sharing.claim(sharing.lender, cards=2)

    for _ in range(2):
        start_replicas(company)

    owner.refresh_from_db()
    assert owner.state == ClaimState.PENDING
    assert [replica.state for replica in replicas_of(deployment)] == [ReplicaState.READY] * 2


def test_deployment_in_draining_queue_keeps_running_and_cannot_grow(company: Company) -> None:
    deployment = ready_deployment(company)
    Queue.objects.filter(pk=company.queue.pk).update(state=QueueState.DRAINING)
    with pytest.raises(SpecRefused, match="queue default is draining"):
        services.deployment_scale(
            deployment=deployment, replicas=2, actor=company.engineer, at=company.at
        )
    (old,) = replicas_of(deployment)
    quotas.claim_revoke(
        claim=claim_of(old.uid),
        reason=ReleaseReason.FAULT,
        grace=timedelta(),
        at=company.at,
        explanation="the node is isolated",
    )

    for _ in range(2):
        start_replicas(company)

    assert [each.state for each in replicas_of(deployment)] == [
        ReplicaState.STOPPED,
        ReplicaState.READY,
    ]
    services.deployment_stop(deployment=deployment, actor=company.engineer, at=company.at)
    for _ in range(2):
        company.turn_deployments()
    with pytest.raises(SpecRefused, match="queue default is draining"):
        services.deployment_start(deployment=deployment, actor=company.engineer, at=company.at)
