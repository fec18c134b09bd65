"""One step of a state machine: compare-and-swap and an append-only row."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from apps.accounts.models import Team
from apps.quotas.models import Claim, ClaimTransition, Queue
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.quotas.claims import CLAIM, ClaimEvent, ClaimState
from controlplane.persistence.state_transitions import apply_transition
from tests.integration.threads import at_once, raised

AT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def new_claim() -> Claim:
    team, _ = Team.objects.get_or_create(name="Addresses", slug="addresses")
    queue, _ = Queue.objects.get_or_create(name="default")
    return Claim.objects.create(
        queue=queue,
        team=team,
        owner_kind="attempt",
        owner_uid="1" * 32,
        shape=[],
        card_count=0,
        chips=["cpu"],
    )


def admit(claim: Claim) -> ClaimState:
    return apply_transition(
        claim, CLAIM, ClaimEvent.ADMIT, into=ClaimTransition, at=AT, reason="it fits"
    )


@pytest.mark.django_db
def test_a_transition_writes_state_columns_and_history_together() -> None:
    claim = new_claim()

    state = apply_transition(
        claim,
        CLAIM,
        ClaimEvent.ADMIT,
        into=ClaimTransition,
        at=AT,
        reason="it fits",
        actor="mei",
        chip="cpu",
    )

    assert (state, claim.state, claim.chip) == (ClaimState.ADMITTED, ClaimState.ADMITTED, "cpu")
    row = Claim.objects.get(pk=claim.pk)
    assert (row.state, row.chip) == ("admitted", "cpu")
    transition = claim.transitions.get()
    assert (transition.from_state, transition.event, transition.to_state) == (
        "pending",
        "admit",
        "admitted",
    )
    assert (transition.reason, transition.actor, transition.at) == ("it fits", "mei", AT)


@pytest.mark.django_db
def test_an_illegal_transition_writes_nothing_and_names_the_current_state() -> None:
    claim = new_claim()
    stale = Claim.objects.get(pk=claim.pk)
    admit(claim)

    with pytest.raises(IllegalTransition, match="a claim that is admitted cannot admit"):
        admit(stale)

    assert claim.transitions.count() == 1


@pytest.mark.django_db
def test_a_transition_of_a_deleted_row_is_refused() -> None:
    claim = new_claim()
    Claim.objects.all().delete()

    with pytest.raises(IllegalTransition, match="a claim that is deleted cannot admit"):
        admit(claim)


@pytest.mark.django_db
def test_history_cannot_be_rewritten() -> None:
    claim = new_claim()
    admit(claim)
    transition = claim.transitions.get()

    transition.reason = "another story"
    with pytest.raises(TypeError, match="append-only"):
        transition.save()


@pytest.mark.django_db(transaction=True)
def test_concurrent_equal_transitions_have_one_winner() -> None:
    for _ in range(10):
        claim = new_claim()
        copies = [Claim.objects.get(pk=claim.pk) for _ in range(4)]

        outcomes = at_once(*[lambda copy=copy: admit(copy) for copy in copies])

        assert raised(outcomes, IllegalTransition) == 3
        assert claim.transitions.count() == 1
        claim.transitions.all().delete()
        claim.delete()
