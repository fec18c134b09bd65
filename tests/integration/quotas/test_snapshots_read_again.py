"""A snapshot reads again what changed, and nothing else."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection
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
from apps.quotas.selectors import claim_rows
from apps.quotas.selectors.shelves import SERVER, Shelf
from apps.quotas.services.claims import claims_release
from controlplane.domain.accelerators import CardState
from controlplane.domain.claims import UNTOLD, ClaimState, ReleaseReason
from controlplane.domain.scheduling.lines import Waiting, by_kind
from launcher.postgres import prepare
from tests.integration.company import Company


def test_only_rows_whose_mark_changed_are_read_and_what_is_gone_is_forgotten() -> None:
    asked: list[set[int]] = []

    def read(keys: Collection[int]) -> dict[int, str]:
        asked.append(set(keys))
        return {key: f"value {len(asked)} of {key}" for key in keys if key != 9}

    shelf: Shelf[str] = Shelf(read)
    assert list(shelf.values(["3(a)", "1(a)", "9(a)"], server=1)) == [
        "value 1 of 3",
        "value 1 of 1",
    ]
    assert list(shelf.values(["1(b)", "3(a)"], server=1)) == ["value 2 of 1", "value 1 of 3"]
    assert list(shelf.values(["1(b)"], server=1)) == ["value 2 of 1"]
    shelf.values(["1(b)", "3(a)"], server=1)
    assert asked == [{3, 1, 9}, {1}, {3}]
    shelf.values(["1(b)"], server=2)
    assert asked[-1] == {1}, "another server numbers its transactions anew"


def test_a_second_snapshot_of_the_same_rows_is_the_same_and_asks_for_versions_alone(
    committed_company: Company,
) -> None:
    committed_company.submit("first", cards=1)
    committed_company.schedule()
    committed_company.submit("second", cards=1)
    first = selectors.snapshot()
    assert (len(first.claims), len(first.running)) == (1, 1)
    with CaptureQueriesContext(connection) as asked:
        second = selectors.snapshot()
    assert second == first
    assert second.claims[0] is first.claims[0]
    assert second.nodes[0] is first.nodes[0]
    assert len(asked) == 6


def test_every_change_of_a_row_is_seen_also_two_in_one_transaction(company: Company) -> None:
    company.submit("first", cards=1)
    claim = Claim.objects.get()
    with transaction.atomic():
        for priority in (5, 7, 9):
            Claim.objects.filter(pk=claim.pk).update(priority=priority)
            assert selectors.snapshot().claims[0].priority == priority
    node = Node.objects.get()
    for state in (CardState.ISOLATED, CardState.NO_NEW_WORK, CardState.USABLE):
        Card.objects.filter(node=node, index=1).update(state=state)
        assert selectors.snapshot().nodes[0].cards[1].state is state
    for weight in (2.0, 3.0):
        Queue.objects.update(weight=weight)
        assert selectors.snapshot().queues[claim.queue.uid].weight == weight
    for cap in (5, 6):
        Entitlement.objects.update_or_create(queue=claim.queue, chip="cpu", defaults={"cap": cap})
        assert selectors.snapshot().queues[claim.queue.uid].entitlements["cpu"].cap == cap
    Node.objects.update(cordoned=True)
    assert not selectors.snapshot().nodes[0].schedulable
    Node.objects.update(labels={"topology.ninefold.dev/rack": "r1"})
    assert selectors.snapshot().nodes[0].domains == {"rack": "r1"}


def test_what_was_rolled_back_is_not_remembered(company: Company) -> None:
    company.submit("first", cards=1)
    with transaction.atomic():
        Claim.objects.update(priority=9)
        assert selectors.snapshot().claims[0].priority == 9
        transaction.set_rollback(True)
    assert selectors.snapshot().claims[0].priority == 0


def test_cards_are_held_from_admission_to_release_and_the_reason_told_last_comes_along(
    company: Company,
) -> None:
    company.submit("first", cards=2)
    company.submit("second", cards=1)
    assert [card.held_by for card in selectors.snapshot().nodes[0].cards] == [None, None]
    company.schedule()
    seen, told = selectors.snapshot_and_reasons()
    holder = Claim.objects.get(state=ClaimState.ADMITTED)
    waiting = Claim.objects.get(state=ClaimState.PENDING)
    assert {card.held_by for card in seen.nodes[0].cards} == {holder.uid}
    assert seen.queues[company.queue.uid].used == {"cpu": 2}
    assert told.by_claim() == {waiting.uid: waiting.explanation}
    assert not told.unheard


def test_who_asks_for_the_same_and_what_each_was_told_is_kept_up_with_the_claims(
    committed_company: Company,
) -> None:
    def check() -> None:
        seen, told = selectors.snapshot_and_reasons()
        assert isinstance(seen.claims, Waiting)
        kept = {kind: list(alike) for kind, alike in seen.claims.by_kind.items()}
        assert kept == by_kind(tuple(seen.claims))
        waiting = Claim.objects.filter(state=ClaimState.PENDING)
        assert told.by_claim() == dict(waiting.values_list("uid", "explanation"))
        assert told.unheard == {uid for uid, was in told.by_claim().items() if was == UNTOLD}
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


def test_whose_claim_it_is_and_for_whom_it_stops_is_seen_though_its_own_row_stays(
    committed_company: Company,
) -> None:
    committed_company.submit("first", cards=2)
    committed_company.schedule()
    committed_company.submit("heir", cards=1)
    heir = Claim.objects.get(state=ClaimState.PENDING)
    Claim.objects.exclude(pk=heir.pk).update(state=ClaimState.REVOKING, revoked_for=heir)
    seen = selectors.snapshot()
    assert (seen.running[0].revoked_for, seen.claims[0].person) == (heir.uid, "mei")
    User.objects.filter(username="mei").update(username="mei-lin")
    assert {each.person for each in (*selectors.snapshot().claims, *seen.claims)} == {
        "mei-lin",
        "mei",
    }
    claims_release(uids=[heir.uid], reason=ReleaseReason.CANCELLED, at=committed_company.at)
    after = selectors.snapshot()
    assert (after.running[0].revoked_for, after.running[0].person) == ("", "mei-lin")


@pytest.mark.parametrize("look", ["_LINE", "_RUNNING"], ids=["before both looks", "between them"])
def test_who_is_admitted_while_a_snapshot_is_read_holds_its_cards(
    look: str, committed_company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed_company.submit("first", cards=2)
    follower = getattr(claim_rows, look)
    looked = follower.now

    def admitted_first(**kwargs: object) -> object:
        with ThreadPoolExecutor(max_workers=1) as pool:
            assert pool.submit(_in_a_thread, committed_company.schedule).result() in (0, 1)
        return looked(**kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(follower, "now", admitted_first)
        seen, told = selectors.snapshot_and_reasons()
    assert not seen.claims
    assert not by_kind(seen.claims)
    assert not told.by_claim()
    assert not told.unheard
    assert {card.held_by for node in seen.nodes for card in node.cards} == {seen.running[0].uid}
    assert selectors.snapshot() == seen


def _in_a_thread(act: Callable[[], int]) -> int:
    try:
        return act()
    finally:
        connection.close()


def test_a_server_that_recovered_is_another_one(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same postmaster: as when the system ended one of its processes for want of memory."""
    folder = tmp_path_factory.mktemp("recovering")
    folder.chmod(0o755)
    running = prepare(folder=folder, durable=True).start(log=folder / "postgres.log")
    try:
        victim = psycopg.connect(running.url)
        before = after = victim.execute(SERVER).fetchone()
        os.kill(victim.info.backend_pid, signal.SIGKILL)
        victim.close()
        deadline = time.monotonic() + 30
        while after in (None, before) and time.monotonic() < deadline:
            time.sleep(0.1)
            after = _told_by(running.url)
        assert before is not None
        assert after is not None
        assert after[:2] == before[:2]
        assert after != before
    finally:
        running.stop()


def _told_by(url: str) -> tuple[object, ...] | None:
    with suppress(psycopg.OperationalError), psycopg.connect(url) as asked:
        return asked.execute(SERVER).fetchone()
    return None
