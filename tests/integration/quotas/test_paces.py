"""How much a cycle does at once follows from how long the last ones took."""

from __future__ import annotations

from datetime import timedelta

from apps.quotas.reconcilers.paces import Pace
from controlplane.domain.scheduling.policies import Policy

POLICY = Policy(placements_per_cycle=200, attempts_per_cycle=2000, cycle=timedelta(seconds=1))


def test_short_cycles_that_leave_claims_unseen_place_more_until_they_take_their_time() -> None:
    pace = Pace()
    assert pace.widened(POLICY) == POLICY
    for _ in range(12):
        placements = pace.widened(POLICY).placements_per_cycle
        # A fifth of a second to look at all, and a millisecond for each.
        pace.took(0.2 + placements / 1000, policy=POLICY, unfinished=True)

    widened = pace.widened(POLICY)
    assert 700 < widened.placements_per_cycle <= 800
    assert 7000 < widened.attempts_per_cycle <= 8000


def test_long_cycles_place_less_again_but_never_less_than_the_policy_says() -> None:
    pace = Pace(times=4.0)
    pace.took(2.0, policy=POLICY, unfinished=False)
    assert pace.widened(POLICY).placements_per_cycle == 400
    pace.took(60.0, policy=POLICY, unfinished=True)
    assert pace.widened(POLICY) == POLICY


def test_a_policy_without_a_time_is_kept_to() -> None:
    pace, fixed = Pace(), Policy(placements_per_cycle=1)
    pace.took(0.001, policy=fixed, unfinished=True)
    assert pace.widened(fixed) == fixed
