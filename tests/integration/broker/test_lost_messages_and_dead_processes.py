"""A broker and controllers that are killed or emptied cost time, never work.

Everything here is real: the commands of the product's worker and beat, Redis or the folder of messages,
PostgreSQL, and programs on the local cluster.
"""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from apps.quotas.models import Claim, Queue
from controlplane.domain.quotas.claims import ClaimState
from controlplane.outbox.models import OutboxMessage
from tests.contract.waiting import until
from tests.integration.broker.brokers import RedisBroker
from tests.integration.broker.controllers import PATIENCE
from tests.integration.broker.products import Product, events, leases_run_out

pytestmark = pytest.mark.slow

SCHEDULED = r"Task apps\.quotas\.tasks\.schedule\[\S+\] succeeded"


def undelivered() -> int:
    return OutboxMessage.objects.filter(delivered_at=None).count()


def waiting_for_a_lock() -> bool:
    """Whether another process waits for a row of this database that this one has locked."""
    with connection.cursor() as cursor:
        cursor.execute(
            # Not pg_stat_activity: within a transaction it says the same each time.
            "SELECT count(*) FROM pg_locks"
            " WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
        )
        return bool(cursor.fetchone()[0])


def test_outbox_messages_reach_their_task_and_a_job_completes(product: Product) -> None:
    product.open_gate()
    job = product.submit()
    assert undelivered() == 1

    product.beat.start()
    product.worker.start()

    product.worker.says(SCHEDULED)
    product.assert_succeeds_once(job)
    until(lambda: undelivered() == 0, what="everything has been relayed")


def test_a_broker_emptied_before_and_during_a_job_loses_no_work(product: Product) -> None:
    product.beat.start()
    job = product.submit()
    assert product.relay_outbox() == 1
    until(lambda: product.broker.waiting("beat"), within=PATIENCE, what="the beat publishes")
    assert product.broker.waiting("celery") == 1

    product.broker.empty()
    assert (undelivered(), product.broker.waiting("celery")) == (0, 0)
    product.worker.start()
    product.running(job)
    product.broker.empty()
    product.open_gate()

    product.assert_succeeds_once(job)


def test_a_new_worker_goes_on_where_one_was_killed(product: Product) -> None:
    product.open_gate()
    job = product.submit()
    product.beat.start()
    with transaction.atomic():
        # The cycle locks the queue in the middle of the transaction that gives a claim its cards.
        Queue.objects.select_for_update().get(pk=product.queue.pk)
        product.worker.start()
        until(waiting_for_a_lock, within=PATIENCE, what="the worker is admitting the claim")
        product.worker.kill()
    claim = Claim.objects.get()
    assert (claim.state, events(claim)) == (ClaimState.PENDING, [])

    leases_run_out()
    product.worker.start()

    product.assert_succeeds_once(job)


@pytest.mark.parametrize("broker", ["folder_broker"], indirect=True)
def test_a_worker_exits_when_a_process_of_its_pool_is_killed(product: Product) -> None:
    job = product.submit()
    product.beat.start()
    product.worker.start()
    product.running(job)

    product.worker.kill_pool_process()
    until(lambda: product.worker.has_ended, within=PATIENCE, what="the worker exits")
    assert "a pool process was killed" in product.worker.log()
    product.open_gate()

    product.assert_succeeds_once(job, supervised=True)


@pytest.mark.redis
@pytest.mark.parametrize("broker", ["redis_broker"], indirect=True)
def test_worker_and_beat_go_on_when_a_killed_redis_is_back(
    product: Product, redis_broker: RedisBroker
) -> None:
    first = product.submit()
    product.beat.start()
    product.worker.start()
    product.running(first)
    already = len(product.worker.log())

    redis_broker.kill()
    product.worker.says("(?i)connection to broker lost|cannot connect to redis", after=already)
    second = product.submit()
    product.open_gate()
    assert undelivered() >= 1
    redis_broker.start()

    # A worker that holds a message when its connection breaks may trip over it and end.
    product.assert_succeeds_once(first, supervised=True)
    product.assert_succeeds_once(second, supervised=True)
