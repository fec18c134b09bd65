"""Leases on rows and on loops, with real threads."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from time import sleep

import pytest
from django.db import transaction
from django.utils import timezone

from apps.accounts.models import Team, User
from apps.quotas.models import Queue
from apps.serving.models import Deployment, DeploymentTransition
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.serving.lifecycle import DEPLOYMENT, DeploymentEvent
from controlplane.persistence.advisory_locks import AdvisoryLock, lock_in_transaction
from controlplane.persistence.leases import (
    hold_leader_lease,
    keep_leases_renewed,
    lease_rows,
    release_row_lease,
)
from controlplane.persistence.models import Lease
from controlplane.persistence.state_transitions import LeaseLost, apply_transition
from tests.contract.waiting import until
from tests.integration.threads import PATIENCE, at_once

AT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def rows(count: int) -> None:
    """So many rows that can be leased."""
    team = Team.objects.create(name="Addresses", slug="addresses")
    user = User.objects.create(username="mei")
    queue = Queue.objects.create(name="default")
    for number in range(count):
        Deployment.objects.create(team=team, created_by=user, queue=queue, name=f"d{number}")


def lease(limit: int = 10, ttl: timedelta = MINUTE) -> list[Deployment]:
    return lease_rows(Deployment.objects.all(), limit=limit, ttl=ttl)


def expire(deployment: Deployment) -> None:
    past = timezone.now() - MINUTE
    Deployment.objects.filter(pk=deployment.pk).update(leased_until=past)


def degrade(deployment: Deployment) -> None:
    apply_transition(
        deployment,
        DEPLOYMENT,
        DeploymentEvent.DEGRADE,
        into=DeploymentTransition,
        at=AT,
        lease_token=deployment.lease_token,
    )


@pytest.mark.django_db(transaction=True)
def test_two_workers_never_share_a_row() -> None:
    rows(40)

    def work() -> list[int]:
        return [row.pk for _ in range(5) for row in lease(limit=3)]

    outcomes = at_once(work, work, work)

    taken = [pk for outcome in outcomes if isinstance(outcome, list) for pk in outcome]
    assert len(taken) == len(set(taken)) == 40


@pytest.mark.django_db
def test_a_leased_row_is_not_leased_again_until_released() -> None:
    rows(1)
    (row,) = lease()

    assert lease() == []
    release_row_lease(row)
    assert lease() == [row]


@pytest.mark.django_db
def test_an_expired_lease_goes_to_the_next_worker_and_its_holder_can_write_no_more() -> None:
    rows(1)
    (slow,) = lease()
    expire(slow)
    (quick,) = lease()
    assert quick.lease_token == slow.lease_token + 1

    with pytest.raises(LeaseLost):
        degrade(slow)

    assert not DeploymentTransition.objects.exists()
    degrade(quick)
    with pytest.raises(LeaseLost):
        degrade(slow)


@pytest.mark.django_db
def test_a_lease_holder_gets_an_illegal_transition_after_a_concurrent_change() -> None:
    rows(1)
    (row,) = lease()
    Deployment.objects.update(state="stopping")

    with pytest.raises(IllegalTransition, match="a deployment that is stopping cannot degrade"):
        degrade(row)


@pytest.mark.django_db
def test_a_stale_holder_cannot_release_its_successors_lease() -> None:
    rows(1)
    (slow,) = lease()
    expire(slow)
    lease()

    release_row_lease(slow)

    assert lease() == []


@pytest.mark.django_db
def test_every_row_is_leased_eventually_with_small_batches() -> None:
    rows(7)
    seen = set()

    for _ in range(4):
        for row in lease(limit=2):
            seen.add(row.name)
            release_row_lease(row)

    assert len(seen) == 7


@pytest.mark.django_db
def test_one_process_leads_and_the_next_gets_a_larger_token() -> None:
    with hold_leader_lease("cycle", ttl=MINUTE) as first:
        assert first is not None
        with hold_leader_lease("cycle", ttl=MINUTE) as second:
            assert second is None
        with hold_leader_lease("another", ttl=MINUTE) as other:
            assert other is not None
    with hold_leader_lease("cycle", ttl=MINUTE) as third:
        assert third is not None
        assert third.token > first.token


@pytest.mark.django_db
def test_an_expired_leader_lease_cannot_end_the_next_one() -> None:
    with hold_leader_lease("cycle", ttl=MINUTE) as slow:
        assert slow is not None
        Lease.objects.update(expires_at=timezone.now() - MINUTE)
        assert not slow.check()
        with hold_leader_lease("cycle", ttl=MINUTE) as quick:
            assert quick is not None
            assert quick.check()
            assert not slow.check()
        Lease.objects.update(expires_at=timezone.now() + MINUTE)
    assert Lease.objects.get().expires_at > timezone.now()


@pytest.mark.django_db(transaction=True)
def test_concurrent_processes_get_one_leader_lease() -> None:
    done = threading.Barrier(4)

    def hold() -> bool:
        with hold_leader_lease("cycle", ttl=MINUTE) as held:
            done.wait(timeout=PATIENCE)
            return held is not None

    assert sorted(map(str, at_once(hold, hold, hold, hold))) == ["False", "False", "False", "True"]


@pytest.mark.django_db(transaction=True)
def test_an_advisory_lock_is_held_until_the_transaction_ends() -> None:
    inside: list[int] = []
    most: list[int] = []

    def enter() -> None:
        with transaction.atomic():
            lock_in_transaction(AdvisoryLock.NUMBER_VERSION, 7)
            inside.append(1)
            most.append(len(inside))
            Queue.objects.count()
            inside.pop()

    at_once(enter, enter, enter, enter)

    assert most == [1, 1, 1, 1]


@pytest.mark.django_db(transaction=True)
def test_an_advisory_lock_outside_a_transaction_is_a_mistake() -> None:
    with pytest.raises(RuntimeError, match="inside a transaction"):
        lock_in_transaction(AdvisoryLock.NUMBER_VERSION)


def lease_end(deployment: Deployment) -> datetime:
    end = Deployment.objects.get(pk=deployment.pk).leased_until
    assert end is not None
    return end


@pytest.mark.django_db(transaction=True)
def test_a_slow_worker_keeps_its_row_and_that_of_a_killed_one_becomes_free() -> None:
    rows(2)
    short = timedelta(seconds=6)
    slow, killed = lease(ttl=short)
    began = lease_end(slow)
    with keep_leases_renewed([slow], ttl=short):
        until(lambda: lease_end(slow) > began, what="the lease is renewed")
        # Nobody renews the lease of a killed worker.
        assert lease_end(killed) == began
        expire(killed)
        assert [one.pk for one in lease()] == [killed.pk]
        degrade(slow)


@pytest.mark.django_db(transaction=True)
def test_the_lease_of_a_row_that_another_worker_took_over_is_not_renewed() -> None:
    rows(1)
    (slow,) = lease()
    with keep_leases_renewed([slow], ttl=timedelta(seconds=0.1)):
        expire(slow)
        (quick,) = lease()
        end = lease_end(quick)
        with pytest.raises(LeaseLost):
            degrade(slow)
        sleep(0.3)
        assert lease_end(quick) == end
