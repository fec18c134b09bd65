"""Many rows, each with values of its own, in one statement."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.accounts.models import Team
from apps.quotas.models import Claim, Queue
from controlplane.persistence.updates import update_each

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
        assert update_each(claims[:3], names) == 3
    assert len(asked) == 1

    read = list(Claim.objects.order_by("pk"))
    for name in names:
        assert [getattr(row, name) for row in read] == [getattr(row, name) for row in claims]
    assert [row.card_count for row in read] == [0, 1, 2, 3]


def test_no_rows_are_no_statement() -> None:
    with CaptureQueriesContext(connection) as asked:
        assert update_each([], ("state",)) == 0
    assert not asked.captured_queries
