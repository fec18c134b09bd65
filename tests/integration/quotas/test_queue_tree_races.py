"""Concurrent changes of the tree: each edit applies to the tree that it was made for, without deadlocks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from django.db import transaction

from apps.accounts.models import User
from apps.quotas import services
from apps.quotas.models import Allocation, Claim, Queue, QueueChange
from apps.quotas.selectors.queue_trees import current_tree_fingerprint, queue_tree_documents
from apps.quotas.services import QueueTreeConflict, QueueTreeRefused, TreeEdit
from controlplane.domain.quotas.claims import ClaimState
from controlplane.domain.quotas.queue_documents import QueueDocument, single_queue_edit
from controlplane.domain.quotas.queues import ChipQuota, QueueState
from tests.integration.company import Company
from tests.integration.quotas.cycles import changed_after_plan
from tests.integration.threads import at_once, raised

#: Rounds of each race; more find no more, and take time.
ITERATIONS = 5


def chief() -> User:
    return User.objects.get_or_create(username="chief", is_superuser=True)[0]


def saving(company: Company, edit: TreeEdit) -> Callable[[], QueueChange]:
    actor = chief()
    return lambda: services.queue_tree_apply(edit, actor=actor, at=company.at)


def weighed(weight: float, *, seen: str = "") -> TreeEdit:
    (uid,) = [uid for uid, one in queue_tree_documents().items() if one.name == "default"]
    queue = replace(queue_tree_documents()[uid], weight=weight)
    return TreeEdit(queues={uid: queue}, action="edit", seen=seen)


def test_of_two_concurrent_edits_one_is_refused_as_outdated(
    committed_company: Company,
) -> None:
    for _round in range(ITERATIONS):
        seen = current_tree_fingerprint()
        weight = queue_tree_documents()[committed_company.queue.uid].weight

        outcomes = at_once(
            saving(committed_company, weighed(weight + 1, seen=seen)),
            saving(committed_company, weighed(weight + 2, seen=seen)),
        )

        assert raised(outcomes, QueueTreeConflict) == 1
        (saved,) = [one for one in outcomes if isinstance(one, QueueChange)]
        (document,) = saved.after.values()
        assert queue_tree_documents()[committed_company.queue.uid].weight == document["weight"]


def test_two_guarantees_that_do_not_fit_together_are_not_both_saved(
    committed_company: Company,
) -> None:
    """Without fingerprints the sums are still validated under the locks."""
    top = Queue.objects.create(name="top", team=committed_company.team)
    top.entitlements.create(chip="cpu", guaranteed=2)

    def child(name: str) -> TreeEdit:
        queue = QueueDocument(
            uid="",
            name=name,
            parent=top.uid,
            team="addresses",
            entitlements={"cpu": ChipQuota(guaranteed=2)},
        )
        return TreeEdit(queues={f"new:{name}": queue}, action="create")

    outcomes = at_once(
        saving(committed_company, child("one")), saving(committed_company, child("other"))
    )

    assert raised(outcomes, QueueTreeRefused) == 1
    assert Queue.objects.filter(parent=top).count() == 1


def test_a_queue_is_split_or_gets_a_claim_and_never_both(committed_company: Company) -> None:
    company = committed_company
    for number in range(ITERATIONS):
        queue = Queue.objects.create(name=f"leaf-{number}", team=company.team)
        below = QueueDocument(uid="", name=f"below-{number}", parent=queue.uid, team="addresses")
        split = TreeEdit(queues={f"new:below-{number}": below}, action="create")

        def submit(queue: Queue = queue, number: int = number) -> object:
            with transaction.atomic():
                return company.submit(f"job {number}", queue=queue)

        outcomes = at_once(saving(company, split), submit)

        claims = Claim.objects.filter(queue=queue).exclude(state=ClaimState.RELEASED).count()
        children = Queue.objects.filter(parent=queue).count()
        assert claims + children == 1, outcomes


def test_concurrent_edits_and_cycles_do_not_deadlock(
    committed_company: Company,
) -> None:
    company = committed_company
    for number in range(4):
        company.submit(f"job {number}")
    stop = threading.Event()

    def edit() -> int:
        actor, saved = chief(), 0
        while not stop.is_set() and saved < 20:
            weight = queue_tree_documents()[company.queue.uid].weight
            services.queue_tree_apply(weighed(weight + 1), actor=actor, at=company.at)
            saved += 1
        return saved

    def cycle() -> int:
        admitted = 0
        try:
            while admitted < 2:
                admitted += company.schedule()
        finally:
            stop.set()
        return admitted

    chief()
    edited, admitted = at_once(edit, cycle)

    assert admitted == 2, admitted
    assert edited == QueueChange.objects.count(), edited
    held = Allocation.objects.filter(released_at=None)
    assert held.count() == held.values("card").distinct().count() == 2


def test_a_queue_closed_while_a_cycle_plans_admits_nothing(
    committed_company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    company = committed_company
    company.submit()

    def close() -> None:
        saved = queue_tree_documents()[company.queue.uid]
        closed = single_queue_edit(replace(saved, state=QueueState.CLOSED), saved=saved)
        services.queue_tree_apply(closed, actor=chief(), at=company.at)

    with changed_after_plan(monkeypatch, close):
        assert company.schedule() == 0
    assert not Allocation.objects.exists()
