"""Estimates of runtimes from the past."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from controlplane.domain.scheduling.runtime_estimates import CompletedRun, RuntimeHistory


def minutes(amount: float) -> timedelta:
    return timedelta(minutes=amount)


def runs(queue: str, cards: int, *lengths: float) -> list[CompletedRun]:
    return [CompletedRun(queue=queue, cards=cards, runtime=minutes(each)) for each in lengths]


HISTORY = RuntimeHistory(
    [
        *runs("research", 1, 1, 2, 3, 4),
        *runs("research", 8, 10, 20, 30, 40),
        *runs("product", 8, 100),
    ],
    enough=4,
)


def test_the_estimate_is_the_quantile_of_the_same_queue_and_size() -> None:
    assert HISTORY.remaining(queue="research", cards=8) == minutes(20)
    assert HISTORY.remaining(queue="research", cards=8, quantile=0.75) == minutes(30)
    assert HISTORY.remaining(queue="research", cards=1, quantile=1) == minutes(4)


def test_sizes_up_to_the_next_power_of_two_are_alike() -> None:
    assert HISTORY.remaining(queue="research", cards=5) == minutes(20)


def test_a_size_that_the_queue_does_not_know_is_judged_by_all_of_the_queue() -> None:
    assert HISTORY.remaining(queue="research", cards=64) == minutes(4)


def test_a_queue_without_a_past_is_judged_by_others_of_that_size() -> None:
    assert HISTORY.remaining(queue="new", cards=8, quantile=1) == minutes(100)


def test_what_has_run_a_while_is_compared_only_with_what_ran_longer() -> None:
    history = RuntimeHistory(runs("q", 1, 1, 2, 3, 60, 120), enough=2)
    assert history.remaining(queue="q", cards=1) == minutes(3)
    assert history.remaining(queue="q", cards=1, elapsed=minutes(10)) == minutes(50)


def test_what_outlived_every_example_is_expected_to_run_as_long_again() -> None:
    assert HISTORY.remaining(queue="research", cards=8, elapsed=minutes(300)) == minutes(300)


def test_without_a_past_nothing_is_guessed() -> None:
    assert RuntimeHistory().remaining(queue="research", cards=1) is None


@given(
    lengths=st.lists(st.integers(1, 1000), min_size=1, max_size=60),
    elapsed=st.integers(0, 900),
    quantiles=st.lists(st.floats(0, 1), min_size=2, max_size=5).map(sorted),
)
def test_what_remains_is_positive_and_grows_with_the_quantile(
    lengths: list[int], elapsed: int, quantiles: list[float]
) -> None:
    history = RuntimeHistory(runs("q", 1, *lengths))
    left = [
        history.remaining(queue="q", cards=1, elapsed=minutes(elapsed), quantile=each)
        for each in quantiles
    ]
    known = [each for each in left if each is not None]
    assert len(known) == len(left)
    assert known == sorted(known)
    assert known[0] > timedelta(0) or not elapsed
