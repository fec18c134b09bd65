"""Pages of rows that follow one another by the uid of the last one."""

from __future__ import annotations

import pytest

from apps.accounts.models import Team
from controlplane.web.pages import keyset_page
from tests import factories


@pytest.fixture
def teams(db: None) -> list[Team]:
    """Oldest first."""
    return [factories.team(f"team-{number}") for number in range(5)]


def test_pages_follow_one_another_newest_first(teams: list[Team]) -> None:
    rows = Team.objects.filter(pk__in=[team.pk for team in teams])
    first = keyset_page(rows, before="", size=3)
    assert (first.rows, first.next_before) == (teams[:1:-1], teams[2].uid)
    second = keyset_page(rows, before=first.next_before, size=3)
    assert (second.rows, second.next_before) == ([teams[1], teams[0]], "")


def test_a_row_that_is_not_theirs_is_no_place_to_begin(teams: list[Team]) -> None:
    theirs = Team.objects.filter(pk__in=[teams[0].pk, teams[4].pk])
    for foreign in (teams[2].uid, "nothing"):
        assert keyset_page(theirs, before=foreign, size=3).rows == [teams[4], teams[0]]
