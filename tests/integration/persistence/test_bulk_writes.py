"""Many rows, each with values of its own, in one statement."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.accounts.models import Team
from apps.quotas.models import Claim, ClaimTransition, Queue
from controlplane.outbox.models import OutboxMessage
from controlplane.persistence.bulk_writes import bulk_insert_rows, bulk_update_rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def claims() -> list[Claim]:
    team = Team.objects.create(name="Maps", slug="maps")
    queue = Queue.objects.create(name="maps")
    return Claim.objects.bulk_create(
        Claim(
            owner_kind="load",
            owner_uid=f"owner-{number}",
            team=team,
            queue=queue,
            shape=[],
            card_count=number,
            chips=["cpu"],
        )
        for number in range(4)
    )


def test_each_row_gets_its_own_values_of_every_kind_and_the_others_stay(
    claims: list[Claim],
) -> None:
    now = timezone.now()
    for number, claim in enumerate(claims[:3]):
        claim.explanation = f"100 % sure of {number}'s \\"
        claim.explanation_numbers = {"wanted": number, "of": ["a", None]}
        claim.admitted_at = now + timedelta(seconds=number) if number else None
        claim.revoked_for = claims[3] if number == 2 else None
        claim.progress = number / 3

    names = ("explanation", "explanation_numbers", "admitted_at", "revoked_for", "progress")
    with CaptureQueriesContext(connection) as asked:
        assert bulk_update_rows(claims[:3], names) == 3
    assert len(asked) == 1

    read = list(Claim.objects.order_by("pk"))
    for name in names:
        assert [getattr(row, name) for row in read] == [getattr(row, name) for row in claims]
    assert [row.card_count for row in read] == [0, 1, 2, 3]


def test_inserted_rows_equal_saved_rows_with_keys_in_order(
    claims: list[Claim],
) -> None:
    now = timezone.now()
    steps = [
        ClaimTransition(
            entity=claim,
            from_state="pending",
            event="admit",
            to_state="admitted",
            reason=f"100 % sure of {claim.uid}'s \\ “cards”\n",
            at=now + timedelta(microseconds=number),
        )
        for number, claim in enumerate(reversed(claims))
    ]
    with CaptureQueriesContext(connection) as asked:
        assert bulk_insert_rows(steps) == 4
    assert len(asked) == 1

    read = list(ClaimTransition.objects.order_by("pk"))
    for name in ("entity", "from_state", "event", "to_state", "reason", "actor", "at"):
        assert [getattr(row, name) for row in read] == [getattr(step, name) for step in steps]


def test_inserted_rows_have_their_creation_time() -> None:
    before = timezone.now()
    bulk_insert_rows([OutboxMessage(topic="claim.requested", payload={"claim_uid": "ü"})])
    message = OutboxMessage.objects.get()
    assert before <= message.created_at <= timezone.now()
    assert (message.payload, message.delivered_at) == ({"claim_uid": "ü"}, None)


def test_values_that_json_cannot_represent_are_refused(claims: list[Claim]) -> None:
    claims[0].explanation_numbers = {"wanted": {1, 2}}
    with pytest.raises(TypeError, match="set cannot be written in bulk"):
        bulk_update_rows(claims[:1], ("explanation_numbers",))


def test_no_rows_cause_no_statement() -> None:
    with CaptureQueriesContext(connection) as asked:
        assert bulk_update_rows([], ("state",)) == bulk_insert_rows([]) == 0
    assert not asked.captured_queries
