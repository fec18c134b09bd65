from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ApiError, ErrorType
from gateway.rate_limits import RateLimiter, RequestCharge
from gateway.snapshots import SnapshotKey


class Clock:
    """A monotonic clock that is set by the test."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


KEY = SnapshotKey(digest="d", uid="key-1", team="team-a")


def passes(limits: RateLimiter, key: SnapshotKey, *, gateways: int = 1) -> bool:
    try:
        charge = limits.admit(key, gateways=gateways, tokens=0)
    except ApiError:
        return False
    charge.settle(0)
    return True


def test_key_without_limits_is_never_rejected() -> None:
    limits = RateLimiter(monotonic=Clock())
    assert all(passes(limits, KEY) for _ in range(1000))
    assert limits.headers(KEY) == {}


def test_bucket_allows_burst_of_one_minute_and_refills_evenly() -> None:
    clock = Clock()
    limits = RateLimiter(monotonic=clock)
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
def test_admitted_requests_never_exceed_burst_and_refill(rate: int, pauses: list[float]) -> None:
    clock = Clock()
    limits = RateLimiter(monotonic=clock)
    key = replace(KEY, requests_per_minute=rate)
    start, passed = clock.now, 0
    for pause in pauses:
        clock.now += pause
        passed += passes(limits, key)
        assert passed <= rate + rate * (clock.now - start) / 60 + 1e-6


def test_retry_after_retry_is_admitted() -> None:
    clock = Clock()
    limits = RateLimiter(monotonic=clock)
    key = replace(KEY, requests_per_minute=2)
    assert passes(limits, key)
    assert passes(limits, key)
    with pytest.raises(ApiError) as raised:
        limits.admit(key, gateways=1, tokens=0)
    assert raised.value.status == 429
    assert raised.value.headers["retry-after"] == "30"
    assert raised.value.headers["x-ratelimit-remaining-requests"] == "0"
    assert raised.value.headers["x-ratelimit-reset-requests"] == "60.000s"
    clock.now += 30
    assert passes(limits, key)


def test_limits_are_divided_among_the_gateways() -> None:
    limits = RateLimiter(monotonic=Clock())
    key = replace(KEY, requests_per_minute=9)
    assert [passes(limits, key, gateways=3) for _ in range(4)] == [True, True, True, False]


def test_share_below_one_allows_one_request_at_a_time() -> None:
    clock = Clock()
    limits = RateLimiter(monotonic=clock)
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
def test_limit_of_zero_admits_nothing(key: SnapshotKey) -> None:
    assert not passes(RateLimiter(monotonic=Clock()), key)


def test_token_debt_delays_next_request() -> None:
    clock = Clock()
    limits = RateLimiter(monotonic=clock)
    key = replace(KEY, tokens_per_minute=60)
    limits.admit(key, gateways=1, tokens=0).settle(90)
    # Counting tokens uses none.
    limits.admit(key, gateways=1, tokens=None).settle(0)
    with pytest.raises(ApiError) as raised:
        limits.admit(key, gateways=1, tokens=0)
    assert raised.value.kind is ErrorType.TOKENS
    assert raised.value.headers["retry-after"] == "31"
    clock.now += 31
    assert passes(limits, key)


def test_concurrency_is_released_when_request_ends() -> None:
    limits = RateLimiter(monotonic=Clock())
    key = replace(KEY, concurrency=2)
    charge = limits.admit(key, gateways=1, tokens=0)
    limits.admit(key, gateways=1, tokens=0)
    assert not passes(limits, key)
    charge.settle(0)
    charge.settle(0)
    assert passes(limits, key)


def test_rejected_request_uses_no_quota() -> None:
    clock = Clock()
    limits = RateLimiter(monotonic=clock)
    key = replace(KEY, requests_per_minute=2, concurrency=1)
    charge = limits.admit(key, gateways=1, tokens=0)
    assert not passes(limits, key)
    charge.settle(0)
    assert passes(limits, key)


def test_new_snapshot_changes_rate_and_keeps_usage() -> None:
    limits = RateLimiter(monotonic=Clock())
    key = replace(KEY, requests_per_minute=10)
    assert all(passes(limits, key) for _ in range(8))
    raised = replace(key, requests_per_minute=12)
    assert [passes(limits, raised) for _ in range(5)] == [True] * 4 + [False]


def test_usage_of_removed_key_is_retained_while_requests_are_open() -> None:
    limits = RateLimiter(monotonic=Clock())
    charge = limits.admit(KEY, gateways=1, tokens=0)
    limits.retain([])
    charge.settle(5)
    limits.retain([])
    with pytest.raises(KeyError):
        limits.headers(KEY)


def test_an_estimate_counts_at_admission_so_that_a_burst_cannot_pass_the_limit() -> None:
    limits = RateLimiter(monotonic=Clock())
    key = replace(KEY, tokens_per_minute=1000)
    # The fourth finds 100 left.
    for _ in range(4):
        limits.admit(key, gateways=1, tokens=300)
    with pytest.raises(ApiError) as raised:
        limits.admit(key, gateways=1, tokens=300)
    assert raised.value.kind is ErrorType.TOKENS
    assert raised.value.headers["x-ratelimit-remaining-tokens"] == "0"


def test_estimate_above_limit_is_admitted_if_bucket_is_full() -> None:
    limits = RateLimiter(monotonic=Clock())
    key = replace(KEY, tokens_per_minute=1000)
    limits.admit(key, gateways=1, tokens=5000).settle(900)
    assert limits.headers(key)["x-ratelimit-remaining-tokens"] == "100"


def test_streamed_tokens_count_while_the_stream_is_open() -> None:
    limits = RateLimiter(monotonic=Clock())
    key = replace(KEY, tokens_per_minute=100)
    charge = limits.admit(key, gateways=1, tokens=10)
    charge.change(60)
    assert limits.headers(key)["x-ratelimit-remaining-tokens"] == "40"
    charge.settle(50)
    assert limits.headers(key)["x-ratelimit-remaining-tokens"] == "50"


def test_limit_added_during_request_is_charged_the_whole_request() -> None:
    limits = RateLimiter(monotonic=Clock())
    charge = limits.admit(KEY, gateways=1, tokens=10)
    limited = replace(KEY, tokens_per_minute=100)
    limits.admit(limited, gateways=1, tokens=0).settle(0)
    charge.settle(30)
    assert limits.headers(limited)["x-ratelimit-remaining-tokens"] == "70"


@given(
    calls=st.lists(
        st.tuples(
            st.integers(0, 500),
            st.lists(st.integers(0, 1000), max_size=4),
            st.integers(0, 1000),
        ),
        max_size=30,
    ),
    order=st.randoms(use_true_random=False),
    pauses=st.booleans(),
)
def test_total_charge_equals_settled_tokens(
    calls: list[tuple[int, list[int], int]], order: Any, *, pauses: bool
) -> None:
    clock = Clock()
    limits = RateLimiter(monotonic=clock)
    limit = 10_000_000
    key = replace(KEY, tokens_per_minute=limit)
    steps: list[tuple[RequestCharge, list[int], int]] = []
    for estimate, changes, used in calls:
        charge = limits.admit(key, gateways=1, tokens=estimate)
        assert charge.tokens == estimate
        steps.append((charge, changes, used))
    order.shuffle(steps)
    for charge, changes, used in steps:
        for tokens in changes:
            charge.change(tokens)
        if pauses:
            clock.now += 1
        charge.settle(used)
        charge.settle(7)
        assert charge.tokens == used
        remaining = int(limits.headers(key)["x-ratelimit-remaining-tokens"]) if calls else limit
        assert 0 <= remaining <= limit
    if calls and not pauses:
        remaining = int(limits.headers(key)["x-ratelimit-remaining-tokens"])
        assert limit - remaining == sum(used for _, _, used in calls)
