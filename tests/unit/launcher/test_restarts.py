from __future__ import annotations

from launcher.supervisor import RestartPolicy

_POLICY = RestartPolicy(first_seconds=0.5, slow_seconds=60.0, quick_failures=5, steady_seconds=30.0)


def test_each_quick_death_doubles_the_delay_until_restarts_become_slow() -> None:
    delays = [_POLICY.delay_seconds(failures) for failures in range(1, 8)]
    assert delays == [0.5, 1.0, 2.0, 4.0, 60.0, 60.0, 60.0]


def test_a_delay_never_exceeds_the_slow_one() -> None:
    policy = RestartPolicy(first_seconds=40.0, slow_seconds=60.0, quick_failures=9)
    assert policy.delay_seconds(3) == 60.0


def test_a_steady_life_wipes_out_earlier_deaths() -> None:
    assert _POLICY.consecutive_failures(4, ran_seconds=29.9) == 5
    assert _POLICY.consecutive_failures(4, ran_seconds=30.0) == 1


def test_only_many_deaths_in_a_row_are_hopeless() -> None:
    assert not _POLICY.is_crash_looping(4)
    assert _POLICY.is_crash_looping(5)
