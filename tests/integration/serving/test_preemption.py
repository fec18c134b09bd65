"""Preemption of the replicas of a deployment on borrowed cards, except one."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pytest_django import Settings

from apps.jobs.services import SpecRefused
from apps.quotas import services as quotas
from apps.quotas.models import Allocation, Claim, Queue
from apps.serving.models import Replica
from apps.serving.services import deployments as services
from apps.serving.services import gateways
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
from tests.integration.serving.deployments import (
    endpoints,
    gateway_has,
    ready_deployment,
    replicas_of,
    snapshot,
    start_replicas,
)


def claim_of(uid: str) -> Claim:
    return Claim.objects.get(owner_kind="replica", owner_uid=uid)


@pytest.fixture
def graces(monkeypatch: pytest.MonkeyPatch) -> list[timedelta]:
    """What processes were given at each stop of a Launch."""
    found: list[timedelta] = []
    stop = FakeCluster.stop

    def recorded(self: FakeCluster, name: str, *, grace: timedelta) -> None:
        found.append(grace)
        stop(self, name, grace=grace)

    monkeypatch.setattr(FakeCluster, "stop", recorded)
    return found


def test_an_evicted_replica_has_less_time_for_open_requests_than_one_that_is_stopped(
    company: Company, graces: list[timedelta]
) -> None:
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


def evicted_replica(company: Company, *, grace: timedelta, replicas: int = 1) -> Replica:
    """The last replica of a deployment that served until its node was isolated."""
    deployment = ready_deployment(company, replicas=replicas)
    gateways.gateway_snapshot_publish(at=company.at)
    gateway_has(company, snapshot().version)
    replica = replicas_of(deployment)[-1]
    revoke(company, replica, grace=grace)
    company.turn_deployments()
    replica.refresh_from_db()
    return replica


def revoke(company: Company, replica: Replica, *, grace: timedelta) -> None:
    quotas.claim_revoke(
        claim=claim_of(replica.uid),
        reason=ReleaseReason.FAULT,
        grace=grace,
        at=company.at,
        explanation="the node is isolated",
    )


def turn(company: Company, replica: Replica, *, later: int = 0, open_requests: bool) -> str:
    """The state of the replica after some seconds, in which its gateway reported whether requests are open."""
    company.later(timedelta(seconds=later))
    # The first run publishes the snapshot that the gateway has in the next one.
    for _ in range(3):
        gateway_has(company, snapshot().version, draining=replica if open_requests else None)
        company.turn_deployments()
    replica.refresh_from_db()
    return replica.state


def test_a_preempted_replica_stops_when_its_last_request_has_ended(
    company: Company, graces: list[timedelta]
) -> None:
    sharing = Sharing.of(company)
    deployment = ready_deployment(company, replicas=2)
    gateways.gateway_snapshot_publish(at=company.at)
    first, second = replicas_of(deployment)
    gateway_has(company, snapshot().version)
    owner = sharing.claim(sharing.lender)
    company.schedule()
    assert claim_of(second.uid).state == ClaimState.REVOKING

    for later in (0, 45, 45):
        state = turn(company, second, later=later, open_requests=True)
        assert (state, second.stop_reason) == (ReplicaState.DRAINING, ReleaseReason.PREEMPTED)
        assert second.message == "evicting (preempted)"
        assert endpoints("parser") == [first.uid]
        assert not graces, "its engine was stopped"
    assert turn(company, second, open_requests=False) == ReplicaState.STOPPED
    assert set(graces) == {EVICTION_GRACE}
    assert claim_of(second.uid).release_reason == ReleaseReason.PREEMPTED
    company.schedule()
    owner.refresh_from_db()
    assert owner.state == ClaimState.ADMITTED


def test_open_requests_delay_an_evicted_replica_within_the_grace_of_its_claim_only(
    company: Company, graces: list[timedelta]
) -> None:
    company.cluster.obedient = False
    replica = evicted_replica(company, grace=timedelta(seconds=120))
    assert turn(company, replica, later=99, open_requests=True) == ReplicaState.DRAINING
    assert not graces
    assert turn(company, replica, later=1, open_requests=True) == ReplicaState.STOPPING
    assert set(graces) == {EVICTION_GRACE}, "the rest of the grace period is that of its processes"
    assert claim_of(replica.uid).state == ClaimState.REVOKING


def test_a_fault_shortens_the_time_that_an_evicted_replica_drains(company: Company) -> None:
    replica = evicted_replica(company, grace=timedelta(seconds=120))
    assert turn(company, replica, open_requests=True) == ReplicaState.DRAINING
    card = Allocation.objects.get(claim=claim_of(replica.uid)).card_id
    assert card is not None
    quotas.claims_evict(
        cards={card: "Xid 79"}, nodes={}, grace=timedelta(seconds=30), at=company.at
    )
    assert turn(company, replica, later=9, open_requests=True) == ReplicaState.DRAINING
    assert turn(company, replica, later=1, open_requests=True) == ReplicaState.STOPPED


def test_the_setting_for_draining_replicas_holds_for_evicted_ones(
    company: Company, settings: Settings
) -> None:
    settings.NINEFOLD_REPLICA_DRAIN_SECONDS = 0
    replica = evicted_replica(company, grace=timedelta(seconds=120))
    assert replica.state == ReplicaState.DRAINING
    assert turn(company, replica, later=1, open_requests=True) == ReplicaState.STOPPED


def test_an_evicted_replica_without_requests_stops_once_gateways_send_none(
    company: Company,
) -> None:
    replica = evicted_replica(company, grace=timedelta(seconds=120))
    company.turn_deployments()
    replica.refresh_from_db()
    assert replica.state == ReplicaState.DRAINING, "the gateway may still send requests to it"
    assert turn(company, replica, open_requests=False) == ReplicaState.STOPPED
    assert claim_of(replica.uid).release_reason == ReleaseReason.FAULT


def test_a_replica_with_no_time_to_drain_stops_at_once(company: Company) -> None:
    replica = evicted_replica(company, grace=EVICTION_GRACE)
    assert replica.state == ReplicaState.STOPPED
    assert ReplicaState.DRAINING not in replica.transitions.values_list("to_state", flat=True)


def test_a_crashed_replica_keeps_its_cards_until_they_are_preempted(company: Company) -> None:
    sharing = Sharing.of(company)
    deployment = ready_deployment(company, replicas=2)
    crashed = replicas_of(deployment)[1]
    for _ in range(6):
        company.cluster.finish(crashed.launch_name, exit_code=139)
        company.turn_deployments()
        crashed.refresh_from_db()
        assert crashed.restart_at is not None
        assert company.schedule() == 0
        assert claim_of(crashed.uid).state == ClaimState.ADMITTED
        if crashed.crashes < 6:
            company.at = crashed.restart_at
            company.turn_deployments()
            crashed.refresh_from_db()

    sharing.claim(sharing.lender)
    company.schedule()
    company.turn_deployments()
    crashed.refresh_from_db()
    assert crashed.state == ReplicaState.STOPPED, "it has no requests to wait for"
    assert claim_of(crashed.uid).release_reason == ReleaseReason.PREEMPTED


def test_a_draining_replica_that_is_evicted_ends_within_the_grace_of_its_claim(
    company: Company, graces: list[timedelta]
) -> None:
    deployment = ready_deployment(company)
    gateways.gateway_snapshot_publish(at=company.at)
    (replica,) = replicas_of(deployment)
    services.deployment_stop(deployment=deployment, actor=company.engineer, at=company.at)
    gateway_has(company, snapshot().version)
    state = turn(company, replica, later=30, open_requests=True)
    assert (state, replica.stop_reason) == (ReplicaState.DRAINING, ReleaseReason.FINISHED)

    revoke(company, replica, grace=timedelta(seconds=60))
    assert turn(company, replica, later=39, open_requests=True) == ReplicaState.DRAINING
    assert turn(company, replica, later=1, open_requests=True) == ReplicaState.STOPPED
    assert set(graces) == {EVICTION_GRACE}
    assert replica.stop_reason == ReleaseReason.FAULT
    assert claim_of(replica.uid).release_reason == ReleaseReason.FAULT


def test_the_replacement_of_an_evicted_replica_is_as_little_preemptible(company: Company) -> None:
    """It is created while the evicted one still drains."""
    replica = evicted_replica(company, grace=timedelta(seconds=120))
    assert not claim_of(replica.uid).preemptible
    assert turn(company, replica, open_requests=True) == ReplicaState.DRAINING
    deployment = replica.backend.revision.deployment
    _, replacement = replicas_of(deployment)
    assert not claim_of(replacement.uid).preemptible


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
