"""Incremental snapshots: only changed rows are read again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psycopg
import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import User
from apps.fleet.models import Card, Node
from apps.quotas import selectors
from apps.quotas.models import Claim, Entitlement, Queue
from apps.quotas.selectors import claim_snapshots
from apps.quotas.services.claims import claims_release
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.quotas.claims import NOT_EVALUATED_REASON, ClaimState, ReleaseReason
from controlplane.domain.scheduling.snapshots import GroupedClaims, claims_by_class
from controlplane.persistence.row_versions import SERVER_IDENTITY
from launcher.postgres import prepare_server
from tests.integration.company import Company


def test_a_second_snapshot_queries_only_versions(
    committed_company: Company,
) -> None:
    committed_company.submit("first", cards=1)
    committed_company.schedule()
    committed_company.submit("second", cards=1)
    first = selectors.scheduling_snapshot()
    assert (len(first.claims), len(first.running)) == (1, 1)
    with CaptureQueriesContext(connection) as asked:
        second = selectors.scheduling_snapshot()
    assert second == first
    assert second.claims[0] is first.claims[0]
    assert second.nodes[0] is first.nodes[0]
    assert len(asked) == 6


def test_every_change_of_a_row_is_seen_even_two_in_one_transaction(company: Company) -> None:
    company.submit("first", cards=1)
    claim = Claim.objects.get()
    with transaction.atomic():
        for priority in (5, 7, 9):
            Claim.objects.filter(pk=claim.pk).update(priority=priority)
            assert selectors.scheduling_snapshot().claims[0].priority == priority
    node = Node.objects.get()
    for state in (CardState.ISOLATED, CardState.NO_NEW_WORK, CardState.USABLE):
        Card.objects.filter(node=node, index=1).update(state=state)
        assert selectors.scheduling_snapshot().nodes[0].cards[1].state is state
    for weight in (2.0, 3.0):
        Queue.objects.update(weight=weight)
        assert selectors.scheduling_snapshot().queues[claim.queue.uid].weight == weight
    for cap in (5, 6):
        Entitlement.objects.update_or_create(queue=claim.queue, chip="cpu", defaults={"cap": cap})
        assert (
            selectors.scheduling_snapshot().queues[claim.queue.uid].entitlements["cpu"].cap == cap
        )
    Node.objects.update(last_seen_at=company.at)
    with CaptureQueriesContext(connection) as asked:
        selectors.scheduling_snapshot()
    assert not any("fleet_node" in query["sql"] and "ANY" in query["sql"] for query in asked), (
        "a heartbeat changes nothing that the scheduler reads"
    )
    Node.objects.update(cordoned=True)
    assert not selectors.scheduling_snapshot().nodes[0].schedulable
    Node.objects.update(labels={"topology.ninefold.dev/rack": "r1"})
    assert selectors.scheduling_snapshot().nodes[0].domains == {"rack": "r1"}


def test_rolled_back_rows_are_not_cached(company: Company) -> None:
    company.submit("first", cards=1)
    with transaction.atomic():
        Claim.objects.update(priority=9)
        assert selectors.scheduling_snapshot().claims[0].priority == 9
        transaction.set_rollback(True)
    assert selectors.scheduling_snapshot().claims[0].priority == 0


def test_a_snapshot_has_allocations_and_the_last_pending_reason(
    company: Company,
) -> None:
    company.submit("first", cards=2)
    company.submit("second", cards=1)
    assert [card.held_by for card in selectors.scheduling_snapshot().nodes[0].cards] == [None, None]
    company.schedule()
    seen, reasons = selectors.snapshot_and_pending_reasons()
    holder = Claim.objects.get(state=ClaimState.ADMITTED)
    waiting = Claim.objects.get(state=ClaimState.PENDING)
    assert {card.held_by for card in seen.nodes[0].cards} == {holder.uid}
    assert seen.queues[company.queue.uid].used == {"cpu": 2}
    assert reasons.by_claim() == {waiting.uid: waiting.explanation}
    assert not reasons.unexplained


def test_equivalence_classes_and_reasons_are_updated_with_claims(
    committed_company: Company,
) -> None:
    def check() -> None:
        seen, reasons = selectors.snapshot_and_pending_reasons()
        assert isinstance(seen.claims, GroupedClaims)
        classes = {kind: list(members) for kind, members in seen.claims.by_kind.items()}
        assert classes == claims_by_class(tuple(seen.claims))
        waiting = Claim.objects.filter(state=ClaimState.PENDING)
        assert reasons.by_claim() == dict(waiting.values_list("uid", "explanation"))
        assert reasons.unexplained == {
            uid for uid, was in reasons.by_claim().items() if was == NOT_EVALUATED_REASON
        }
        assert [claim.uid for claim in seen.claims] == list(
            waiting.order_by("id").values_list("uid", flat=True)
        )

    check()
    for number in range(6):
        committed_company.submit(f"job {number}", cards=1 + number % 2)
        check()
    committed_company.schedule()
    check()
    waiting = Claim.objects.filter(state=ClaimState.PENDING)
    waiting.update(explanation="something new")
    check()
    last = waiting.latest("id")
    waiting.filter(pk=last.pk).update(priority=9)
    check()
    claims_release(uids=[last.uid], reason=ReleaseReason.CANCELLED, at=committed_company.at)
    check()
    claims_release(
        uids=list(Claim.objects.exclude(state=ClaimState.RELEASED).values_list("uid", flat=True)),
        reason=ReleaseReason.CANCELLED,
        at=committed_company.at,
    )
    check()


def test_changes_of_user_and_beneficiary_are_seen(
    committed_company: Company,
) -> None:
    committed_company.submit("first", cards=2)
    committed_company.schedule()
    committed_company.submit("heir", cards=1)
    beneficiary = Claim.objects.get(state=ClaimState.PENDING)
    Claim.objects.exclude(pk=beneficiary.pk).update(
        state=ClaimState.REVOKING, revoked_for=beneficiary
    )
    seen = selectors.scheduling_snapshot()
    assert (seen.running[0].revoked_for, seen.claims[0].user) == (beneficiary.uid, "mei")
    User.objects.filter(username="mei").update(username="mei-lin")
    assert {each.user for each in (*selectors.scheduling_snapshot().claims, *seen.claims)} == {
        "mei-lin",
        "mei",
    }
    claims_release(uids=[beneficiary.uid], reason=ReleaseReason.CANCELLED, at=committed_company.at)
    after = selectors.scheduling_snapshot()
    assert (after.running[0].revoked_for, after.running[0].user) == ("", "mei-lin")


@pytest.mark.parametrize(
    "name", ["_PENDING", "_ALLOCATED"], ids=["before both queries", "between them"]
)
def test_a_claim_admitted_while_a_snapshot_is_read_has_its_cards(
    name: str, committed_company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed_company.submit("first", cards=2)
    feed = getattr(claim_snapshots, name)
    refresh = feed.refresh

    def admitted_first(**kwargs: object) -> object:
        with ThreadPoolExecutor(max_workers=1) as pool:
            assert pool.submit(_in_a_thread, committed_company.schedule).result() in (0, 1)
        return refresh(**kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(feed, "refresh", admitted_first)
        seen, reasons = selectors.snapshot_and_pending_reasons()
    assert not seen.claims
    assert not claims_by_class(seen.claims)
    assert not reasons.by_claim()
    assert not reasons.unexplained
    assert {card.held_by for node in seen.nodes for card in node.cards} == {seen.running[0].uid}
    assert selectors.scheduling_snapshot() == seen


def _in_a_thread(action: Callable[[], int]) -> int:
    try:
        return action()
    finally:
        connection.close()


def test_a_recovered_server_has_another_identity(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same postmaster, as after the OOM killer has ended a backend."""
    folder = tmp_path_factory.mktemp("recovering")
    folder.chmod(0o755)
    running = prepare_server(folder=folder, durable=True).start(log=folder / "postgres.log")
    try:
        victim = psycopg.connect(running.url)
        before = after = victim.execute(SERVER_IDENTITY).fetchone()
        os.kill(victim.info.backend_pid, signal.SIGKILL)
        victim.close()
        deadline = time.monotonic() + 30
        while after in (None, before) and time.monotonic() < deadline:
            time.sleep(0.1)
            after = _answer_of(running.url)
        assert before is not None
        assert after is not None
        assert after[:2] == before[:2]
        assert after != before
    finally:
        running.stop()


def _answer_of(url: str) -> tuple[object, ...] | None:
    with suppress(psycopg.OperationalError), psycopg.connect(url) as asked:
        return asked.execute(SERVER_IDENTITY).fetchone()
    return None
