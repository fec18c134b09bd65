from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Barrier

import pytest

from controlplane.web.response_cache import TimedCache


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_a_value_is_computed_again_only_after_its_time() -> None:
    clock, numbers = Clock(), count(1)
    cache = TimedCache(lambda: next(numbers), seconds=5, clock=clock)
    assert (cache(), cache()) == (1, 1)
    clock.seconds += 4.9
    assert cache() == 1
    clock.seconds += 0.1
    assert cache() == 2


def test_an_error_is_not_cached() -> None:
    divisors = iter([0, 1])
    cache = TimedCache(lambda: 7 // next(divisors), seconds=5)
    with pytest.raises(ZeroDivisionError):
        cache()
    assert cache() == 7


def test_concurrent_callers_compute_once() -> None:
    numbers = count(1)
    askers = Barrier(8)
    cache = TimedCache(lambda: next(numbers), seconds=60)

    def request() -> int:
        askers.wait(timeout=10)
        return cache()

    with ThreadPoolExecutor(8) as pool:
        answers = [future.result(timeout=10) for future in [pool.submit(request) for _ in range(8)]]
    assert answers == [1] * 8
