from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ApiError, ErrorType
from gateway.limits import Limits
from gateway.snapshots import Key


class Clock:
    """A monotonic clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


KEY = Key(digest="d", uid="key-1", team="team-a")


def passes(limits: Limits, key: Key, *, gateways: int = 1) -> bool:
    try:
        limits.admit(key, gateways=gateways)
    except ApiError:
        return False
    limits.settle(key, tokens=0)
    return True


def test_a_key_without_limits_is_never_held_up() -> None:
    limits = Limits(monotonic=Clock())
    assert all(passes(limits, KEY) for _ in range(1000))
    assert limits.headers(KEY) == {}


def test_a_minutes_worth_of_requests_passes_at_once_and_then_evenly() -> None:
    clock = Clock()
    limits = Limits(monotonic=clock)
    key = replace(KEY, requests_per_minute=6)
    assert [passes(limits, key) for _ in range(7)] == [True] * 6 + [False]
    clock.now += 9.9
    assert not passes(limits, key)
    clock.now += 0.2
    assert passes(limits, key)
    assert not passes(limits, key)


@given(
    rate=st.integers(1, 100),
    pauses=st.lists(st.floats(0, 30, allow_nan=False), min_size=1, max_size=200),
)
def test_no_more_pass_than_the_burst_and_what_has_flowed_since(
    rate: int, pauses: list[float]
) -> None:
    clock = Clock()
    limits = Limits(monotonic=clock)
    key = replace(KEY, requests_per_minute=rate)
    start, passed = clock.now, 0
    for pause in pauses:
        clock.now += pause
        passed += passes(limits, key)
        assert passed <= rate + rate * (clock.now - start) / 60 + 1e-6


def test_the_refusal_says_when_to_come_back_and_coming_back_then_works() -> None:
    clock = Clock()
    limits = Limits(monotonic=clock)
    key = replace(KEY, requests_per_minute=2)
    assert passes(limits, key)
    assert passes(limits, key)
    with pytest.raises(ApiError) as raised:
        limits.admit(key, gateways=1)
    assert raised.value.status == 429
    assert raised.value.headers["retry-after"] == "30"
    assert raised.value.headers["x-ratelimit-remaining-requests"] == "0"
    assert raised.value.headers["x-ratelimit-reset-requests"] == "60.000s"
    clock.now += 30
    assert passes(limits, key)


def test_limits_are_divided_among_the_gateways() -> None:
    limits = Limits(monotonic=Clock())
    key = replace(KEY, requests_per_minute=9)
    assert [passes(limits, key, gateways=3) for _ in range(4)] == [True, True, True, False]


def test_a_share_below_one_still_lets_one_pass_at_a_time() -> None:
    clock = Clock()
    limits = Limits(monotonic=clock)
    key = replace(KEY, requests_per_minute=1, concurrency=1)
    assert passes(limits, key, gateways=4)
    assert not passes(limits, key, gateways=4)
    clock.now += 239
    assert not passes(limits, key, gateways=4)
    clock.now += 2
    assert passes(limits, key, gateways=4)


@pytest.mark.parametrize(
    "key",
    [
        replace(KEY, requests_per_minute=0),
        replace(KEY, tokens_per_minute=0),
        replace(KEY, concurrency=0),
    ],
)
def test_a_limit_of_zero_lets_nothing_pass(key: Key) -> None:
    assert not passes(Limits(monotonic=Clock()), key)


def test_tokens_are_charged_afterwards_and_a_debt_is_paid_before_the_next_request() -> None:
    clock = Clock()
    limits = Limits(monotonic=clock)
    key = replace(KEY, tokens_per_minute=60)
    limits.admit(key, gateways=1)
    limits.settle(key, tokens=90)
    with pytest.raises(ApiError) as raised:
        limits.admit(key, gateways=1)
    assert raised.value.kind is ErrorType.TOKENS
    assert raised.value.headers["retry-after"] == "31"
    clock.now += 31
    assert passes(limits, key)


def test_a_place_is_free_again_when_its_request_has_ended() -> None:
    limits = Limits(monotonic=Clock())
    key = replace(KEY, concurrency=2)
    limits.admit(key, gateways=1)
    limits.admit(key, gateways=1)
    assert not passes(limits, key)
    limits.settle(key, tokens=0)
    assert passes(limits, key)


def test_a_refused_request_uses_nothing_up() -> None:
    clock = Clock()
    limits = Limits(monotonic=clock)
    key = replace(KEY, requests_per_minute=2, concurrency=1)
    limits.admit(key, gateways=1)
    assert not passes(limits, key)
    limits.settle(key, tokens=0)
    assert passes(limits, key)


def test_a_new_snapshot_changes_the_rate_and_forgives_nothing() -> None:
    limits = Limits(monotonic=Clock())
    key = replace(KEY, requests_per_minute=10)
    assert all(passes(limits, key) for _ in range(8))
    raised = replace(key, requests_per_minute=12)
    assert [passes(limits, raised) for _ in range(5)] == [True] * 4 + [False]


def test_forgetting_keys_keeps_the_accounts_of_open_requests() -> None:
    limits = Limits(monotonic=Clock())
    limits.admit(KEY, gateways=1)
    limits.keep([])
    limits.settle(KEY, tokens=5)
    limits.keep([])
    with pytest.raises(KeyError):
        limits.headers(KEY)
